// The IPAM plugin dhcp without its daemon and without a server. The build adds its own sources to this directory.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
)

// Reads the config as the daemon does, and gives an address that no server gave.
func init() {
	add := func(args *skel.CmdArgs) error {
		var decoder version.ConfigDecoder
		called, err := decoder.Decode(args.StdinData)
		if err != nil {
			return err
		}
		conf := NetConf{}
		if err := json.Unmarshal(args.StdinData, &conf); err != nil {
			return fmt.Errorf("error parsing netconf: %v", err)
		}
		if _, err := prepareOptions(args.Args, conf.IPAM.ProvideOptions, conf.IPAM.RequestOptions); err != nil {
			return err
		}
		address := net.IPNet{IP: net.IPv4(10, 77, 0, 2), Mask: net.CIDRMask(24, 32)}
		result := &current.Result{CNIVersion: current.ImplementedSpecVersion, IPs: []*current.IPConfig{{Address: address}}}
		return types.PrintResult(result, called)
	}
	done := func(*skel.CmdArgs) error { return nil }
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Check: done, Del: done}, version.All, "dhcp")
	os.Exit(0)
}
