package main

import (
	"encoding/json"
	"regexp"
	"slices"

	"github.com/containernetworking/cni/pkg/types"
)

// unfinished says which plugin lacked something on this machine, and how far it came.
type unfinished struct {
	// Its place in the list. All plugins before it have accepted their part.
	Index int    `json:"index"`
	Error string `json:"error"`
	// Whether it was there. If so, it has decoded its keys.
	Ran bool `json:"ran"`
	// Those of its keys whose values neither the plugin nor the kernel had checked by then.
	Unchecked []string `json:"unchecked"`
	// The plugins that have read their part.
	Reached []string `json:"reached"`
}

// gap is an error by which a plugin says that this machine lacks something.
type gap struct {
	error     *regexp.Regexp
	unchecked []string
}

func lacks(pattern string, unchecked ...string) gap {
	return gap{regexp.MustCompile(pattern), unchecked}
}

// What each plugin says where the kernel, a program, a device or a file is missing. Every other error is a rejection of the config.
var gaps = map[string][]gap{
	"macvlan": {
		lacks("^failed to create macvlan: operation not supported$", "mtu", "mac"),
		lacks("^(Link not found|no default route interface found)$", "mtu", "mac", "mode"),
		lacks(`^invalid MTU [0-9]+, must be \[0, master MTU\(`, "mac", "mode"),
	},
	"ipvlan": {
		lacks("^failed to create ipvlan: operation not supported$", "mtu"),
		lacks(`^failed to lookup master ".*": Link not found$`, "mtu"),
		lacks("^no default route interface found$", "mtu", "mode"),
	},
	"vlan": {
		lacks("^failed to create vlan: operation not supported$"),
		lacks("^Link not found$", "mtu"),
		lacks(`^invalid MTU [0-9]+, must be \[0, master MTU\(`),
	},
	"bridge": {
		lacks(`^failed to create bridge ".*": could not add ".*": operation not supported$`, "bridge", "mtu", "ipMasqBackend"),
		lacks(`^failed to setup spoof-check: .*executable file not found`, "ipMasqBackend"),
		lacks("^failed to create vlan interface: .*operation not supported$", "ipMasqBackend"),
		// Only the first pod: whereabouts gives it the address that the plugin takes for the gateway of the range.
		lacks(`^failed to add route '\{:: .*: invalid argument$`, "ipMasqBackend"),
		lacks("^(could not find nftables binary: |failed to locate iptables: |could not initialize iptables).*executable file not found"),
	},
	"host-device": {
		lacks("^error with host device: lstat /sys/bus/pci/devices/.*: no such file or directory$", "hwaddr", "kernelpath"),
		lacks("^runtime config DeviceID .* not found or unsupported$", "hwaddr", "kernelpath"),
		lacks("^failed to find host device: (Link not found|failed to find physical interface)$"),
		lacks("^failed to find host device: failed to (read directory|find network device in path) ", "hwaddr"),
		lacks("^failed to find host device: no net directory under pci device ", "hwaddr", "kernelpath"),
	},
	"vrf": {
		// Of other names the kernel would have had to say what it takes.
		lacks("^cmdAdd failed: could not add VRF [a-z][a-z0-9-]{0,14}: operation not supported$"),
		lacks("^cmdAdd failed: could not add VRF .*: operation not supported$", "vrfname"),
	},
	"tuning": {
		lacks("^open /proc/sys/.*: no such file or directory$", "mac", "mtu", "txQLen"),
	},
	"firewall": {
		lacks("^dial unix .*: connect: no such file or directory$", "ingressPolicy"),
		lacks("executable file not found|operation not supported|protocol not available", "ingressPolicy"),
	},
	"portmap":   {lacks("executable file not found|operation not supported|protocol not available")},
	"bandwidth": {lacks("operation not supported")},
	"sbr":       {lacks("operation not supported")},
}

// What any plugin passes on of its IPAM plugin.
var gapsOfIPAM = []gap{
	lacks(`^failed to find plugin ".+" in path \[`, "ipMasqBackend"),
	lacks("^(failed to execute IPAM delegate: )?open /[^:]*: no such file or directory$", "ipMasqBackend"),
}

// unfinished is how far the plugins came; nil if one rejected its config.
func (p *programs) unfinished() *unfinished {
	if p.failed == nil {
		return nil
	}
	problem := p.failed.Error()
	for _, known := range slices.Concat(gaps[p.plugin], gapsOfIPAM) {
		if known.error.MatchString(problem) {
			return &unfinished{p.index, problem, p.ran, known.unchecked, p.reached}
		}
	}
	// The interface of a simulated plugin is missing.
	if len(p.simulated) > 0 && p.index > p.simulated[0] {
		return &unfinished{p.index, problem, false, nil, p.reached}
	}
	return nil
}

// called notes what a plugin and its IPAM plugin have read.
func (p *programs) called(stdin []byte, err error) {
	p.ran, p.failed = true, err
	p.reached = append(p.reached, p.plugin)
	var conf types.NetConf
	if err == nil && json.Unmarshal(stdin, &conf) == nil && conf.IPAM.Type != "" {
		p.reached = append(p.reached, conf.IPAM.Type)
	}
}
