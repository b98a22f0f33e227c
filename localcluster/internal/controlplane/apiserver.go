package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/client-go/tools/cache"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// drain is how long requests that run may go on when the server stops. Watches
// never end by themselves, and with the default a single one would hold the end
// of the cluster back for a minute.
const drain = 500 * time.Millisecond

func (c *Cluster) apiServer(ctx context.Context) error {
	server, err := c.newAPIServer(ctx)
	if err != nil {
		return err
	}
	prepared, err := server.PrepareRun()
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return prepared.Run(ctx)
}

// newAPIServer builds the chain of servers as Kubernetes' own command does, with
// our version and our way to stop.
func (c *Cluster) newAPIServer(ctx context.Context) (*aggregator.APIAggregator, error) {
	completed, err := c.apiServerOptions(ctx)
	if err != nil {
		return nil, err
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	config.KubeAPIs.ControlPlane.Generic.EffectiveVersion = c.version.of(config.KubeAPIs.ControlPlane.Generic.EffectiveVersion)
	config.Aggregator.GenericConfig.EffectiveVersion = c.version.of(config.Aggregator.GenericConfig.EffectiveVersion)
	config.ApiExtensions.GenericConfig.EffectiveVersion = c.version.of(config.ApiExtensions.GenericConfig.EffectiveVersion)
	complete, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("complete the configuration: %w", err)
	}
	server, err := app.CreateServerChain(complete)
	if err != nil {
		return nil, fmt.Errorf("set up: %w", err)
	}
	server.GenericAPIServer.ShutdownTimeout = drain
	return server, nil
}

func (c *Cluster) apiServerOptions(ctx context.Context) (options.CompletedOptions, error) {
	var none options.CompletedOptions
	o := options.NewServerRunOptions()
	if err := parse("kube-apiserver", o.Flags(), []string{
		"--etcd-servers=" + c.etcd.String(), "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(portOf(c.listener)),
		"--advertise-address=127.0.0.1", "--tls-cert-file=" + c.files.ServerCert, "--tls-private-key-file=" + c.files.ServerKey,
		"--client-ca-file=" + c.files.CA, "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.files.ServiceAccountKey, "--service-account-signing-key-file=" + c.files.ServiceAccountKey,
		"--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/12", "--profiling=false", "--endpoint-reconciler-type=none",
		"--max-requests-inflight=1600", "--max-mutating-requests-inflight=800", "--cert-dir=" + c.opts.Dir, "--allow-privileged=true",
	}); err != nil {
		return none, err
	}
	o.SecureServing.Listener = c.listener
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return none, fmt.Errorf("set feature gates: %w", err)
	}
	completed, err := o.Complete(ctx)
	if err != nil {
		return none, fmt.Errorf("complete options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return none, errors.Join(errs...)
	}
	if completed.InformerName == nil {
		if completed.InformerName, err = cache.NewInformerName("kube-apiserver"); err != nil {
			return none, fmt.Errorf("name the informers: %w", err)
		}
	}
	return completed, nil
}
