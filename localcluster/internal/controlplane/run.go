package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apioptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kcmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// hubControllers keep an API server alone usable: namespaces can be deleted,
// owners take their dependents with them, and service accounts have tokens.
const hubControllers = "namespace-controller,garbage-collector-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,clusterrole-aggregation-controller"

// fullControllers make workloads work on top of that.
const fullControllers = hubControllers + ",deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller,job-controller," +
	"cronjob-controller,endpointslice-controller,endpoints-controller,disruption-controller,resourcequota-controller,persistentvolume-binder-controller," +
	"persistentvolumeclaim-protection-controller,persistentvolume-protection-controller,ttl-after-finished-controller,horizontal-pod-autoscaler-controller," +
	"node-lifecycle-controller,pod-garbage-collector-controller,taint-eviction-controller"

// Run starts the parts and calls ready once the API server answers. It returns
// when ctx has ended and the parts have stopped, or when one of them fails.
func Run(ctx context.Context, opts Options, ready func(*Cluster) error) error {
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged // three components share this process's logging
	setVersion(opts.Version)
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	defer os.RemoveAll(c.sockets)
	etcd, err := c.startEtcd(ctx)
	if err != nil {
		return err
	}
	defer etcd.Close()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	part := func(name string, run func(context.Context) error) {
		wg.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	part("kube-apiserver", c.apiServer)
	if err := c.awaitReady(ctx); err != nil {
		cancel(err)
		wg.Wait()
		return context.Cause(ctx)
	}
	part("kube-controller-manager", c.controllerManager)
	if opts.Full {
		part("kube-scheduler", c.scheduler)
	}
	if err := ready(c); err != nil {
		cancel(err)
	}
	<-ctx.Done()
	wg.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// setVersion makes the server report v, or a sane default when the binary was
// built without stamping one.
func setVersion(v string) {
	if v == "" && version.Get().GitVersion != "v0.0.0-master+$Format:%H$" {
		return
	}
	if v == "" {
		v = DefaultVersion
	}
	_ = version.SetDynamicVersion(v) // refused when it differs from the stamped one in more than a suffix
}

// DefaultVersion is the Kubernetes version that is linked in.
const DefaultVersion = "v1.37.2"

func (c *Cluster) apiServer(ctx context.Context) error {
	o := apioptions.NewServerRunOptions()
	sets := o.Flags()
	if err := parse("kube-apiserver", sets, []string{
		"--etcd-servers=" + c.etcdURL(), "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(c.port),
		"--advertise-address=127.0.0.1", "--tls-cert-file=" + c.files.ServerCert, "--tls-private-key-file=" + c.files.ServerKey,
		"--client-ca-file=" + c.files.CA, "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.files.ServiceAccountKey, "--service-account-signing-key-file=" + c.files.ServiceAccountKey,
		"--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/12", "--profiling=false", "--endpoint-reconciler-type=none",
		"--max-requests-inflight=1600", "--max-mutating-requests-inflight=800", "--cert-dir=" + c.opts.Dir, "--allow-privileged=true",
	}); err != nil {
		return err
	}
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("set feature gates: %w", err)
	}
	completed, err := o.Complete(ctx)
	if err != nil {
		return fmt.Errorf("complete options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return errors.Join(errs...)
	}
	return apiserver.Run(ctx, completed)
}

func (c *Cluster) controllerManager(ctx context.Context) error {
	o, err := kcmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("options: %w", err)
	}
	controllers := hubControllers
	if c.opts.Full {
		controllers = fullControllers
	}
	sets := o.Flags(kcm.KnownControllers(), kcm.ControllersDisabledByDefault(), kcm.ControllerAliases())
	if err := parse("kube-controller-manager", sets, []string{
		"--kubeconfig=" + c.Kubeconfig, "--leader-elect=false", "--secure-port=0", "--controllers=" + controllers,
		"--root-ca-file=" + c.files.CA, "--service-account-private-key-file=" + c.files.ServiceAccountKey, "--profiling=false",
		"--kube-api-qps=1000", "--kube-api-burst=2000", "--concurrent-gc-syncs=5", "--concurrent-namespace-syncs=10", "--controller-start-interval=0s",
		"--node-monitor-period=1s", "--horizontal-pod-autoscaler-sync-period=15s",
	}); err != nil {
		return err
	}
	cfg, err := o.Config(ctx, kcm.KnownControllers(), kcm.ControllersDisabledByDefault(), kcm.ControllerAliases())
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return kcm.Run(ctx, cfg.Complete())
}

func (c *Cluster) scheduler(ctx context.Context) error {
	o := scheduleroptions.NewOptions()
	if err := parse("kube-scheduler", *o.Flags, []string{
		"--kubeconfig=" + c.Kubeconfig, "--leader-elect=false", "--secure-port=0", "--profiling=false", "--kube-api-qps=1000", "--kube-api-burst=2000",
	}); err != nil {
		return err
	}
	cc, sched, err := app.Setup(ctx, o)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return app.Run(ctx, cc, sched)
}

func parse(name string, sets cliflag.NamedFlagSets, args []string) error {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	for _, s := range sets.FlagSets {
		fs.AddFlagSet(s)
	}
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	return nil
}
