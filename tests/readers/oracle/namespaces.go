package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// The interface that stands for the one of the host, and the other end of it.
const master, peer = "eth0", "wire0"

// inNamespace starts the program again in a network namespace of its own, and ends this one with the other's exit code.
func inNamespace() {
	const started = "NADMIT_ORACLE_STARTED"
	if os.Getenv(started) != "" {
		return
	}
	again := exec.Command("/proc/self/exe", os.Args[1:]...)
	again.Env = append(os.Environ(), started+"=yes")
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		again.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		again.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		again.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	err := again.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		os.Exit(ended.ExitCode())
	}
	if err != nil {
		fail("start in a network namespace: %v", err)
	}
	os.Exit(0)
}

// prepare makes the host's interface, and a namespace for the pod, whose path it returns.
func prepare() (string, error) {
	// What plugins write under these must not reach the machine.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return "", err
	}
	for _, written := range []string{"/var/lib", "/run"} {
		if err := syscall.Mount("nadmit-oracle", written, "tmpfs", 0, ""); err != nil {
			return "", err
		}
	}
	if err := up("lo"); err != nil {
		return "", err
	}
	// Not every kernel has dummy interfaces.
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: master, MTU: 1500}, PeerName: peer}
	if err := netlink.LinkAdd(pair); err != nil {
		return "", err
	}
	for _, name := range []string{peer, master} {
		if err := up(name); err != nil {
			return "", err
		}
	}
	address, err := netlink.ParseAddr("192.0.2.1/24")
	if err != nil {
		return "", err
	}
	if err := netlink.AddrAdd(pair, address); err != nil {
		return "", err
	}
	route := &netlink.Route{LinkIndex: pair.Attrs().Index, Gw: []byte{192, 0, 2, 254}}
	if err := netlink.RouteAdd(route); err != nil {
		return "", err
	}
	path := make(chan string)
	problem := make(chan error)
	go func() {
		// The namespace lives as long as this thread, which does nothing else.
		runtime.LockOSThread()
		if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
			problem <- err
			return
		}
		path <- fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), syscall.Gettid())
		select {}
	}()
	select {
	case found := <-path:
		return found, nil
	case err := <-problem:
		return "", err
	}
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// clean removes what plugins left behind, on the host and in the pod.
func clean(target string) {
	remove(netlink.LinkList, netlink.LinkDel)
	pod, err := netns.GetFromPath(target)
	if err != nil {
		fail("open the namespace of the pod: %v", err)
	}
	defer pod.Close()
	handle, err := netlink.NewHandleAt(pod)
	if err != nil {
		fail("enter the namespace of the pod: %v", err)
	}
	defer handle.Close()
	remove(handle.LinkList, handle.LinkDel)
}

func remove(list func() ([]netlink.Link, error), del func(netlink.Link) error) {
	links, err := list()
	if err != nil {
		return
	}
	for _, link := range links {
		if name := link.Attrs().Name; name != master && name != peer && name != "lo" {
			_ = del(link)
		}
	}
}
