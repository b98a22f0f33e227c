// Package controlplane runs one Kubernetes cluster's own processes as parts of
// this process: etcd, the API server, the controller manager and the scheduler.
// They are the real ones, started through their option structs, with what a
// cluster on one machine does not need turned off.
package controlplane

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter/localcluster/internal/pki"
)

// Options say what to run and where.
type Options struct {
	Name string
	// Dir keeps data, certificates and the port across restarts.
	Dir string
	// Full adds the scheduler and the workload controllers to the API server.
	Full bool
	// Sync makes etcd wait for the disk. Without it a power cut may lose data;
	// the end of the process does not.
	Sync bool
	// Version is reported as the server's version when set.
	Version string
}

// Cluster is a running control plane.
type Cluster struct {
	opts       Options
	files      pki.Files
	port       int
	sockets    string
	Kubeconfig string // internal kubeconfig of the administrator
}

// Server is the URL of the API server.
func (c *Cluster) Server() string { return "https://127.0.0.1:" + strconv.Itoa(c.port) }

// prepare makes certificates, finds a port and writes the internal kubeconfig.
func prepare(opts Options) (*Cluster, error) {
	c := &Cluster{opts: opts, Kubeconfig: filepath.Join(opts.Dir, "admin.kubeconfig")}
	var err error
	if err = os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the cluster's folder: %w", err)
	}
	if c.files, err = pki.Ensure(filepath.Join(opts.Dir, "pki")); err != nil {
		return nil, err
	}
	if c.port, err = choosePort(filepath.Join(opts.Dir, "port")); err != nil {
		return nil, err
	}
	// A path of a socket must be short; the cluster's folder may be deep.
	if c.sockets, err = os.MkdirTemp("", "rlc"); err != nil {
		return nil, fmt.Errorf("make a folder for sockets: %w", err)
	}
	return c, WriteKubeconfig(c.Kubeconfig, c.opts.Name, c.Server(), c.files)
}

// choosePort takes the port of the last run if it is free, or a new one.
func choosePort(file string) (int, error) {
	if b, err := os.ReadFile(file); err == nil {
		if port, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && free(port) {
			return port, nil
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	if err := os.WriteFile(file, []byte(strconv.Itoa(port)), 0o600); err != nil {
		return 0, fmt.Errorf("remember the port: %w", err)
	}
	return port, nil
}

func free(port int) bool {
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
