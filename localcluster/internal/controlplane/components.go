package controlplane

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kcmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// hubControllers keep an API server alone usable: namespaces can be deleted,
// owners take their dependents with them, and service accounts have tokens.
func hubControllers() []string {
	return []string{
		names.NamespaceController, names.GarbageCollectorController, names.ServiceAccountController, names.ServiceAccountTokenController,
		names.RootCACertificatePublisherController, names.ClusterRoleAggregationController,
	}
}

// fullControllers make workloads work on top of that.
func fullControllers() []string {
	return append(hubControllers(),
		names.DeploymentController, names.ReplicaSetController, names.StatefulSetController, names.DaemonSetController,
		names.JobController, names.CronJobController, names.HorizontalPodAutoscalerController, names.DisruptionController,
		names.EndpointSliceController, names.EndpointsController, names.ResourceQuotaController, names.TTLAfterFinishedController,
		names.PersistentVolumeBinderController, names.PersistentVolumeClaimProtectionController, names.PersistentVolumeProtectionController,
		names.NodeLifecycleController, names.TaintEvictionController, names.PodGarbageCollectorController,
	)
}

func (c *Cluster) controllerManager(ctx context.Context) error {
	o, err := kcmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("options: %w", err)
	}
	controllers := hubControllers()
	if c.opts.Full {
		controllers = fullControllers()
	}
	sets := o.Flags(kcm.KnownControllers(), kcm.ControllersDisabledByDefault(), kcm.ControllerAliases())
	if err := parse("kube-controller-manager", sets, []string{
		"--kubeconfig=" + c.Kubeconfig, "--leader-elect=false", "--secure-port=0", "--controllers=" + strings.Join(controllers, ","),
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
	cc, sched, err := scheduler.Setup(ctx, o)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return scheduler.Run(ctx, cc, sched)
}

// parse sets a component's options by its flags, which are its stable interface.
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
