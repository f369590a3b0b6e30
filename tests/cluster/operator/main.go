// The part of the SR-IOV network operator that writes NetworkAttachmentDefinitions, as a process of its own.
//
// It runs upstream's reconcilers of SriovNetwork, SriovIBNetwork and OVSNetwork unchanged, and wires them as upstream's manager
// does. What needs nodes or images (policies, device plugins, draining) is left out: nothing of it writes a NAD.
//
// It logs JSON to standard error. A reconcile begins with the line `Reconciling <kind>`; every NAD wakes the reconcilers of all
// three kinds, and the two that own nothing by its name end there.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	sriovv1 "github.com/k8snetworkplumbingwg/sriov-network-operator/api/v1"
	"github.com/k8snetworkplumbingwg/sriov-network-operator/controllers"
	operatorlog "github.com/k8snetworkplumbingwg/sriov-network-operator/pkg/log"
	"github.com/k8snetworkplumbingwg/sriov-network-operator/pkg/utils"
	"github.com/k8snetworkplumbingwg/sriov-network-operator/pkg/vars"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	// The flag --kubeconfig comes with controller-runtime, and the prefix of resource names, RESOURCE_PREFIX, is read by upstream.
	bindata := flag.String("bindata", "bindata", "the directory of upstream's templates, or a changed copy of it")
	flag.StringVar(&vars.Namespace, "namespace", vars.Namespace, "the operator's namespace, the only one whose networks it looks at")
	flag.Parse()
	logAsJSON()

	if err := run(ctrl.SetupSignalHandler(), *bindata); err != nil {
		ctrl.Log.Error(err, "the operator ends")
		os.Exit(1)
	}
}

func run(ctx context.Context, bindata string) error {
	if vars.Namespace == "" {
		return fmt.Errorf("no namespace: give --namespace, or set NAMESPACE")
	}
	if vars.ResourcePrefix == "" {
		return fmt.Errorf("no prefix of resource names: set RESOURCE_PREFIX")
	}

	// Upstream expects the templates below its working directory. A missing one would only be noticed at the first network.
	sriovv1.ManifestsPath = filepath.Join(bindata, "manifests", "cni-config")
	for _, plugin := range []string{"sriov", "ovs"} {
		if _, err := os.Stat(filepath.Join(sriovv1.ManifestsPath, plugin)); err != nil {
			return fmt.Errorf("--bindata: %w", err)
		}
	}

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, sriovv1.AddToScheme, nadv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}

	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	// The client library lets a process send twenty requests a second. The tests wait for what the operator does, not for that.
	config.QPS = -1
	// One manager of its own for the networks, over all namespaces. "0" means that no metrics are served.
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:         scheme,
		LeaderElection: false,
		Metrics:        metrics.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}

	// When a namespace appears, the reconcilers ask for the networks that wait for it.
	for _, network := range []client.Object{&sriovv1.SriovNetwork{}, &sriovv1.SriovIBNetwork{}, &sriovv1.OVSNetwork{}} {
		err := manager.GetCache().IndexField(ctx, network, "spec.networkNamespace", func(object client.Object) []string {
			return []string{object.(controllers.NetworkCRInstance).NetworkNamespace()}
		})
		if err != nil {
			return err
		}
	}

	c := manager.GetClient()
	for _, reconciler := range []interface{ SetupWithManager(ctrl.Manager) error }{
		&controllers.SriovNetworkReconciler{Client: c, Scheme: scheme},
		&controllers.SriovIBNetworkReconciler{Client: c, Scheme: scheme},
		&controllers.OVSNetworkReconciler{Client: c, Scheme: scheme},
	} {
		if err := reconciler.SetupWithManager(manager); err != nil {
			return err
		}
	}
	if err := manager.Start(ctx); err != nil {
		return err
	}
	// Whoever is told to end takes its finalizers off its SriovNetworks, past the cache, which has ended too. There is no webhook of upstream's
	// here that could be set to Ignore: that error in the log is expected.
	uncached, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	utils.Shutdown(uncached)
	return nil
}

// logAsJSON keeps upstream's options and changes the form of a line. The "production" mode, which has that form too, would
// leave out lines when many are alike, and the tests count them.
func logAsJSON() {
	operatorlog.Options.NewEncoder = func(options ...ctrlzap.EncoderConfigOption) zapcore.Encoder {
		config := zap.NewProductionEncoderConfig()
		for _, option := range options {
			option(&config)
		}
		return zapcore.NewJSONEncoder(config)
	}
	operatorlog.InitLog()
}
