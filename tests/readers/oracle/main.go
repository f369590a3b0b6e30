// The real readers of a NAD's config: Multus, libcni, the plugins of the CNI project and whereabouts.
//
// Each line of the standard input is a question: {"config": "...", "name": "net", "networks": "net", "device": true}. The answer is a line
// as well: {"error": "..."} if a pod with this network would not start, {} if it would. The config goes the way of a real pod: Multus finds
// the NAD by the pod's annotation, and the pod's device by the NAD's; libcni calls the plugins, and those are the real programs, which run in
// network namespaces of their own.
//
// A line {"selection": "..."} asks only what Multus reads in that annotation of a pod in the namespace apps; the answer is
// {"selected": [["apps", "net", "net1"]]}: namespace, name and interface of each network.
//
// Programs that need hardware or a cluster are simulated: see simulated.go.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/version"
	nads "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/k8sclient"
	"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/multus"
	multustypes "gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/types"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// The device that the pod was given, and the resource that it is of.
const (
	device   = "0000:01:00.1"
	resource = "a.io/b"
)

type question struct {
	Config string `json:"config"`
	// The name of the NAD, and the annotation by which the pod asks for it.
	Name     string `json:"name"`
	Networks string `json:"networks"`
	// Whether the NAD has a resourceName annotation, and the pod a device.
	Device bool `json:"device"`
	// Instead of all that: an annotation that is only read.
	Selection *string `json:"selection"`
}

type answer struct {
	Error string `json:"error,omitempty"`
	// What this machine lacks: the config was accepted, and then the kernel or a program was missing.
	Missing string `json:"missing,omitempty"`
	// The networks in an annotation that was only read.
	Selected [][3]string `json:"selected,omitempty"`
}

// Errors of a machine on which some features are missing.
var missing = []string{
	"operation not supported", "executable file not found", "protocol not available", "no such file or directory",
	"failed to find host device", "Link not found", "no default route interface found", "failed to find plugin", "must be [0, master MTU(",
}

func main() {
	if simulate(filepath.Base(os.Args[0])) {
		return
	}
	if len(os.Args) != 2 {
		fail("usage: oracle DIRECTORY-OF-PLUGINS")
	}
	inNamespace()
	target, err := prepare()
	if err != nil {
		fail("prepare the network namespaces: %v", err)
	}
	scratch, err := os.MkdirTemp("", "nadmit-oracle-")
	if err != nil {
		fail("%v", err)
	}
	defer os.RemoveAll(scratch)
	// What an administrator of whereabouts writes on each node.
	installed := filepath.Join(scratch, "whereabouts.conf")
	if err := os.WriteFile(installed, []byte(`{"datastore":"kubernetes","kubernetes":{"kubeconfig":"/none"}}`), 0o600); err != nil {
		fail("%v", err)
	}
	os.Setenv(whereaboutsConf, installed)
	pod := &podNetwork{plugins: os.Args[1], scratch: scratch, target: target}
	output := bufio.NewWriter(os.Stdout)
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			break
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			fail("question: %v", err)
		}
		reply, err := json.Marshal(pod.attach(asked))
		if err != nil {
			fail("answer: %v", err)
		}
		output.Write(append(reply, '\n'))
		if input.Buffered() == 0 {
			output.Flush()
		}
	}
	output.Flush()
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "oracle: "+format+"\n", args...)
	os.Exit(1)
}

// podNetwork attaches one pod to a network after the other.
type podNetwork struct {
	plugins, scratch, target string
	number                   int
}

func (p *podNetwork) attach(asked question) (reply answer) {
	defer func() {
		if problem := recover(); problem != nil {
			reply.Error = fmt.Sprintf("panic: %v", problem)
		}
	}()
	if asked.Selection != nil {
		return selection(*asked.Selection)
	}
	p.number++
	conf := &multustypes.NetConf{BinDir: p.plugins, CNIDir: p.scratch, ConfDir: p.scratch}
	delegate, err := selected(asked, conf)
	if err != nil {
		return answer{Error: "multus: " + err.Error()}
	}
	runtime := &libcni.RuntimeConf{
		ContainerID: fmt.Sprintf("c%d", p.number),
		NetNS:       p.target,
		IfName:      "net1",
		Args: [][2]string{
			{"IgnoreUnknown", "true"}, {"K8S_POD_NAMESPACE", "apps"}, {"K8S_POD_NAME", "pod"},
			{"K8S_POD_INFRA_CONTAINER_ID", "c"}, {"K8S_POD_UID", "u"},
		},
	}
	run := &programs{real: &invoke.DefaultExec{RawExec: &invoke.RawExec{}}}
	if _, err := multus.DelegateAdd(run, nil, nil, delegate, runtime, conf); err != nil {
		reply.Error = err.Error()
	}
	for _, feature := range missing {
		if strings.Contains(reply.Error, feature) {
			reply = answer{Missing: reply.Error}
		}
	}
	// Whatever is wrong now was wrong before, or comes of what this machine lacks.
	_ = multus.DelegateDel(run, nil, delegate, runtime, conf)
	clean(p.target)
	return reply
}

// selection is what Multus reads in the annotation of a pod.
func selection(text string) (reply answer) {
	networks, err := k8sclient.GetPodNetwork(podWith(text))
	if _, none := err.(*k8sclient.NoK8sNetworkError); err != nil && !none {
		return answer{Error: err.Error()}
	}
	for _, network := range networks {
		reply.Selected = append(reply.Selected, [3]string{network.Namespace, network.Name, network.InterfaceRequest})
	}
	return reply
}

func podWith(networks string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "apps", Name: "pod", Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": networks},
	}}
}

// selected is the network of a pod, as Multus finds it.
func selected(asked question, conf *multustypes.NetConf) (*multustypes.DelegateNetConf, error) {
	nad := &nads.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: asked.Name},
		Spec:       nads.NetworkAttachmentDefinitionSpec{Config: asked.Config},
	}
	if asked.Device {
		nad.Annotations = map[string]string{"k8s.v1.cni.cncf.io/resourceName": resource}
	}
	// The cache of Multus, which is never filled from a cluster.
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	stored := cache.NewSharedIndexInformer(nil, nad, 0, byNamespace)
	if err := stored.GetIndexer().Add(nad); err != nil {
		return nil, err
	}
	pod := podWith(asked.Networks)
	networks, err := k8sclient.GetPodNetwork(pod)
	if err != nil {
		return nil, err
	}
	given := map[string]*multustypes.ResourceInfo{resource: {DeviceIDs: []string{device}}}
	delegates, err := k8sclient.GetNetworkDelegates(&k8sclient.ClientInfo{NetDefInformer: stored}, pod, networks, conf, given)
	if err != nil {
		return nil, err
	}
	return delegates[0], nil
}

// programs runs what libcni calls.
type programs struct {
	real invoke.Exec
	version.PluginDecoder
}

func (p *programs) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	if !isReal(filepath.Base(path)) {
		return simulated(stdin)
	}
	return p.real.ExecPlugin(ctx, path, stdin, environ)
}

func (p *programs) FindInPath(name string, paths []string) (string, error) {
	if filepath.Base(name) != name {
		return "", fmt.Errorf("invalid plugin name: %s", name)
	}
	if simulatedPlugins[name] {
		return filepath.Join("/simulated", name), nil
	}
	return p.real.FindInPath(name, paths)
}
