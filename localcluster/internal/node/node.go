// Package node simulates the nodes of a local cluster with KWOK's controllers:
// pods on them become Running and Ready, and Jobs complete, without a container
// runtime.
package node

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodelease "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwokclient "sigs.k8s.io/kwok/pkg/utils/client"
)

// Start registers n nodes and plays their part until ctx ends. Complaints go to log.
func Start(ctx context.Context, kubeconfig string, n int, log io.Writer) error {
	ctx = kwoklog.NewContext(ctx, kwoklog.NewLogger(log, kwoklog.LevelError))
	conf, typed, err := config(kubeconfig)
	if err != nil {
		return err
	}
	for i := range n {
		if err := register(ctx, typed, fmt.Sprintf("node-%d", i)); err != nil {
			return err
		}
	}
	ctr, err := controllers.NewController(conf)
	if err != nil {
		return fmt.Errorf("set up the simulated nodes: %w", err)
	}
	if err := ctr.Start(ctx); err != nil {
		return fmt.Errorf("start the simulated nodes: %w", err)
	}
	return nil
}

func config(kubeconfig string) (controllers.Config, kubernetes.Interface, error) {
	var conf controllers.Config
	stages, err := stages()
	if err != nil {
		return conf, nil, err
	}
	set, err := kwokclient.NewClientset("", kubeconfig)
	if err != nil {
		return conf, nil, fmt.Errorf("reach the API server: %w", err)
	}
	rc, err := set.ToRESTConfig()
	if err != nil {
		return conf, nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	rc.QPS = -1
	typed, err := kubernetes.NewForConfig(rc)
	if err != nil {
		return conf, nil, fmt.Errorf("build a client: %w", err)
	}
	kwok, err := versioned.NewForConfig(rc)
	if err != nil {
		return conf, nil, fmt.Errorf("build a client: %w", err)
	}
	dyn, err := set.ToDynamicClient()
	if err != nil {
		return conf, nil, fmt.Errorf("build a client: %w", err)
	}
	mapper, err := set.ToRESTMapper()
	if err != nil {
		return conf, nil, fmt.Errorf("build a mapper: %w", err)
	}
	raw, err := rest.RESTClientFor(rc)
	if err != nil {
		return conf, nil, fmt.Errorf("build a client: %w", err)
	}
	return controllers.Config{
		Clock: clock.RealClock{}, DynamicClient: dyn, RESTClient: raw, RESTMapper: mapper,
		ImpersonatingDynamicClient: set.ToImpersonatingDynamicClient(), ImpersonatingTypedClient: set.ToImpersonatingTypedClient(),
		TypedClient: typed, TypedKwokClient: kwok, ManageAllNodes: true,
		CIDR: "10.244.0.1/16", NodeIP: "10.0.0.1", NodePort: 10250,
		LocalStages: stages, PodPlayStageParallelism: 8, NodePlayStageParallelism: 2,
		NodeLeaseDurationSeconds: 40, NodeLeaseParallelism: 1, PodsOnNodeSyncParallelism: 1, ID: "rutter-localcluster",
	}, typed, nil
}

// stages are the steps that nodes and pods go through, as the KWOK module ships them.
func stages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	out := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, text := range []string{nodefast.DefaultNodeInit, nodelease.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete} {
		stage, err := kwokconfig.UnmarshalWithType[*internalversion.Stage](text)
		if err != nil {
			return nil, fmt.Errorf("read a stage: %w", err)
		}
		out[stage.Spec.ResourceRef] = append(out[stage.Spec.ResourceRef], stage)
	}
	return out, nil
}

func register(ctx context.Context, client kubernetes.Interface, name string) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: resource.MustParse("5000"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			"node.kubernetes.io/instance-type": "simulated", "type": "kwok",
		}, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("register node %s: %w", name, err)
	}
	return nil
}
