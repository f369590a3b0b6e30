package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"
	"github.com/containernetworking/plugins/plugins/ipam/host-local/backend/allocator"
	stores "github.com/containernetworking/plugins/plugins/ipam/host-local/backend/testing"
	"github.com/k8snetworkplumbingwg/whereabouts/pkg/allocate"
	whereabouts "github.com/k8snetworkplumbingwg/whereabouts/pkg/config"
	pools "github.com/k8snetworkplumbingwg/whereabouts/pkg/types"
)

// The programs that really run.
var realPlugins = map[string]bool{
	"bridge": true, "macvlan": true, "ipvlan": true, "vlan": true, "host-device": true,
	"tuning": true, "vrf": true, "sbr": true, "bandwidth": true, "firewall": true, "portmap": true,
}

func isReal(name string) bool { return realPlugins[name] }

// The plugins that need hardware.
var simulatedPlugins = map[string]bool{"sriov": true, "ib-sriov": true, "ovs": true}

// The environment variable with the path of the node's whereabouts configuration.
const whereaboutsConf = "NADMIT_WHEREABOUTS_CONF"

// simulate is called with the name that the program was started by, and is true if that is an IPAM plugin which needs a cluster: its
// own code reads the config and chooses the first address.
func simulate(name string) bool {
	if name != "whereabouts" {
		return false
	}
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		refuse(err)
	}
	reply, err := ofWhereabouts(stdin)
	if err != nil {
		refuse(err)
	}
	fmt.Println(string(reply))
	return true
}

func refuse(problem error) {
	reply, _ := json.Marshal(map[string]any{"code": 100, "msg": problem.Error()})
	fmt.Println(string(reply))
	os.Exit(1)
}

// simulated is the result of a plugin that does not run: it decodes what libcni hands to it, and calls its IPAM plugin.
func simulated(stdin []byte) ([]byte, error) {
	var conf types.NetConf
	if err := json.Unmarshal(stdin, &conf); err != nil {
		return nil, fmt.Errorf("simulated plugin: %w", err)
	}
	var reply []byte
	var err error
	switch conf.IPAM.Type {
	case "host-local":
		reply, err = ofHostLocal(stdin)
	case "whereabouts":
		reply, err = ofWhereabouts(stdin)
	default:
		return json.Marshal(map[string]any{"cniVersion": conf.CNIVersion})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", conf.IPAM.Type, err)
	}
	given, err := create.CreateFromBytes(reply)
	if err != nil {
		return nil, fmt.Errorf("result of %s: %w", conf.IPAM.Type, err)
	}
	if _, err := current.NewResultFromResult(given); err != nil {
		return nil, fmt.Errorf("result of %s: %w", conf.IPAM.Type, err)
	}
	return reply, nil
}

// ofHostLocal is the first result of host-local on a node.
func ofHostLocal(stdin []byte) ([]byte, error) {
	conf, version, err := allocator.LoadIPAMConfig(stdin, "")
	if err != nil {
		return nil, err
	}
	result := &current.Result{CNIVersion: current.ImplementedSpecVersion, Routes: conf.Routes}
	for number := range conf.Ranges {
		store := stores.NewFakeStore(map[string]string{}, map[string]net.IP{})
		given, err := allocator.NewIPAllocator(&conf.Ranges[number], store, number).Get("c", "net1", nil)
		if err != nil {
			return nil, err
		}
		result.IPs = append(result.IPs, given)
	}
	return inVersion(result, version)
}

// ofWhereabouts is the first result of whereabouts in a cluster.
func ofWhereabouts(stdin []byte) ([]byte, error) {
	conf, version, err := whereabouts.LoadIPAMConfig(stdin, os.Getenv("CNI_ARGS"), os.Getenv(whereaboutsConf))
	if err != nil {
		return nil, err
	}
	result := &current.Result{DNS: conf.DNS, Routes: conf.Routes}
	// The pools that it makes of the ranges, and what other pools hold, which it does not give either.
	held := map[string][]pools.IPReservation{}
	for _, part := range conf.IPRanges {
		reserved := slices.Clone(held[part.Range])
		for name, pool := range held {
			for _, other := range pool {
				if name != part.Range {
					reserved = append(reserved, pools.IPReservation{IP: other.IP})
				}
			}
		}
		given, updated, err := allocate.AssignIP(part, reserved, "c", "apps/pod", "net1")
		if err != nil {
			return nil, err
		}
		held[part.Range] = updated
		result.IPs = append(result.IPs, &current.IPConfig{Address: given, Gateway: conf.Gateway})
	}
	for _, fixed := range conf.Addresses {
		result.IPs = append(result.IPs, &current.IPConfig{Address: fixed.Address, Gateway: fixed.Gateway})
	}
	return inVersion(result, version)
}

func inVersion(result types.Result, version string) ([]byte, error) {
	converted, err := result.GetAsVersion(version)
	if err != nil {
		return nil, err
	}
	return json.Marshal(converted)
}
