// Package controlplane runs one Kubernetes cluster's own processes as parts of
// this process: etcd, the API server, the controller manager and the scheduler.
// They are the real ones, started through their option structs, with what a
// cluster on one machine does not need turned off.
package controlplane

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"

	"github.com/rutterhq/rutter/localcluster/internal/pki"
)

// Options say what to run and where.
type Options struct {
	Name string
	// Dir keeps data, certificates and the port across restarts. It exists.
	Dir string
	// Full adds the scheduler and the workload controllers to the API server.
	Full bool
	// Sync makes etcd wait for the disk. Without it a power cut may lose data;
	// the end of the process does not.
	Sync bool
	// Version is reported as the server's version when set.
	Version string
	// Log takes what etcd has to complain about.
	Log io.Writer
}

// Cluster is a running control plane.
type Cluster struct {
	opts     Options
	version  reportedVersion
	files    pki.Files
	listener net.Listener
	etcd     sockets
	// Kubeconfig is the path of the administrator's kubeconfig for the parts of
	// the cluster itself.
	Kubeconfig string
}

// Server is the URL of the API server.
func (c *Cluster) Server() string { return "https://127.0.0.1:" + strconv.Itoa(portOf(c.listener)) }

// prepare makes certificates, takes a port and writes the internal kubeconfig.
func prepare(opts Options) (*Cluster, error) {
	c := &Cluster{opts: opts, Kubeconfig: filepath.Join(opts.Dir, "admin.kubeconfig")}
	var err error
	if c.version, err = parseVersion(opts.Version); err != nil {
		return nil, err
	}
	if c.files, err = pki.Ensure(filepath.Join(opts.Dir, "pki")); err != nil {
		return nil, err
	}
	if c.listener, err = listen(filepath.Join(opts.Dir, "port")); err != nil {
		return nil, err
	}
	if err = WriteKubeconfig(c.Kubeconfig, c.opts.Name, c.Server(), c.files); err == nil {
		c.etcd, err = newSockets(opts.Dir)
	}
	if err != nil {
		c.listener.Close()
		return nil, fmt.Errorf("prepare the cluster: %w", err)
	}
	return c, nil
}
