package controlplane

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// pollReady is how often readiness is asked while a cluster starts: the API
// server has no way to tell when it is ready.
const pollReady = 50 * time.Millisecond

// RESTConfig reaches the API server as the administrator.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	rc, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	rc.QPS = -1
	return rc, nil
}

func (c *Cluster) client() (*kubernetes.Clientset, error) {
	rc, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	set, err := kubernetes.NewForConfig(rc)
	if err != nil {
		return nil, fmt.Errorf("build a client: %w", err)
	}
	return set, nil
}

// awaitReady returns when /readyz says ok.
func (c *Cluster) awaitReady(ctx context.Context) error {
	set, err := c.client()
	if err != nil {
		return err
	}
	return until(ctx, func() bool {
		body, err := set.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil && string(body) == "ok"
	})
}

// AwaitUsable returns when pods can be created and, with nodes, scheduled.
func (c *Cluster) AwaitUsable(ctx context.Context, nodes int) error {
	set, err := c.client()
	if err != nil {
		return err
	}
	return until(ctx, func() bool {
		if _, err := set.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return false
		}
		if nodes == 0 {
			return true
		}
		list, err := set.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		ready := 0
		for i := range list.Items {
			if schedulable(&list.Items[i]) {
				ready++
			}
		}
		return ready >= nodes
	})
}

func schedulable(n *corev1.Node) bool {
	if len(n.Spec.Taints) > 0 {
		return false
	}
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}

func until(ctx context.Context, ok func() bool) error {
	tick := time.NewTicker(pollReady)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("stopped before the cluster was ready: %w", context.Cause(ctx))
		}
	}
	return nil
}
