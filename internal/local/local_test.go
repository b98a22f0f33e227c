package local_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/local"
	"github.com/rutterhq/rutter/internal/testenv"
)

func podTemplate(restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{{Name: "c", Image: "any"}}}}
}

// TestWorkloads: health means something, because the real controllers run.
func TestWorkloads(t *testing.T) {
	env := testenv.Full(t)
	ns, c := env.Namespace(t), env.Client(t)
	five := int32(5)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: &five,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}, Template: podTemplate(corev1.RestartPolicyAlways)}}
	if _, err := c.AppsV1().Deployments(ns).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "once"}, Spec: batchv1.JobSpec{Template: podTemplate(corev1.RestartPolicyNever)}}
	if _, err := c.BatchV1().Jobs(ns).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 30*time.Second, func() error {
		got, err := c.AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil || got.Status.AvailableReplicas != 5 {
			return rutter.Errorf(rutter.CodeUnavailable, "deployment: %d of 5 available: %v", got.Status.AvailableReplicas, err)
		}
		j, err := c.BatchV1().Jobs(ns).Get(t.Context(), "once", metav1.GetOptions{})
		if err != nil || j.Status.Succeeded != 1 {
			return rutter.Errorf(rutter.CodeUnavailable, "job has not completed: %v", err)
		}
		return nil
	})
}

// TestGarbage: owners take their dependents with them, and namespaces end.
func TestGarbage(t *testing.T) {
	c := testenv.Hub(t).Client(t)
	ns, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "gone-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	maps := c.CoreV1().ConfigMaps(ns.Name)
	owner, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}}}
	if _, err := maps.Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone := func(err error) error {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return rutter.Errorf(rutter.CodeConflict, "still there: %v", err)
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		_, err := maps.Get(t.Context(), "owned", metav1.GetOptions{})
		return gone(err)
	})
	if err := c.CoreV1().Namespaces().Delete(t.Context(), ns.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		_, err := c.CoreV1().Namespaces().Get(t.Context(), ns.Name, metav1.GetOptions{})
		return gone(err)
	})
}

// TestManaged: a cluster outlives its command, keeps its data, its version and
// its kubeconfig over a crash, and goes without a trace.
func TestManaged(t *testing.T) {
	root := t.TempDir()
	m, err := local.Create(t.Context(), root, "keep", local.Options{Shape: local.Hub, KubeVersion: "v1.33.4"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = local.Delete(context.Background(), root, "keep") })
	if info, err := os.Stat(m.Kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig is a secret: %v, %v", info, err)
	}
	c := client(t, m.Kubeconfig)
	if v, err := c.Discovery().ServerVersion(); err != nil || v.GitVersion != "v1.33.4" || v.Minor != "33" {
		t.Errorf("the server reports %v, %v", v, err)
	}
	if _, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := c.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := local.Create(t.Context(), root, "keep", local.Options{Shape: local.Hub}); rutter.CodeOf(err) != rutter.CodeConflict {
		t.Errorf("a second cluster of that name: %v", err)
	}
	if err := syscall.Kill(m.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 10*time.Second, func() error {
		all, err := local.List(root)
		if err != nil || len(all) != 1 || all[0].Running {
			return rutter.Errorf(rutter.CodeConflict, "%v %v", all, err)
		}
		return nil
	})
	again, err := local.Create(t.Context(), root, "keep", local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if again.Server != m.Server || again.Shape != local.Hub || !again.Created.Equal(m.Created) {
		t.Errorf("was %+v, came back as %+v", m, again)
	}
	if _, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("the old kubeconfig must still work and the data be there: %v", err)
	}
	if v, err := c.Discovery().ServerVersion(); err != nil || v.GitVersion != "v1.33.4" {
		t.Errorf("after the restart the server reports %v, %v", v, err)
	}
	review := &authv1.TokenReview{Spec: authv1.TokenReviewSpec{Token: token.Status.Token}}
	if got, err := c.AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{}); err != nil || !got.Status.Authenticated {
		t.Errorf("a token from before the crash: %+v, %v", got.Status, err)
	}
	if err := local.Delete(t.Context(), root, "keep"); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(root); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, bad := range []string{"", "../x", "UPPER", "a/b"} {
		if _, err := local.Create(t.Context(), root, bad, local.Options{}); rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Errorf("name %q: %v", bad, err)
		}
	}
}

// TestRestart: a full cluster comes back with its node and goes on working; a
// folder that is in use is refused at once; a watch doesn't hold the end back.
func TestRestart(t *testing.T) {
	opts := local.Options{Name: "again", Dir: t.TempDir(), Shape: local.Full, Nodes: 2}
	first, err := local.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Stop(context.Background()) })
	c := client(t, first.Kubeconfig)
	watch, err := c.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	begin := time.Now()
	second := opts
	second.Log = filepath.Join(t.TempDir(), "log")
	if _, err := local.Start(t.Context(), second); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("two clusters in one folder: %v", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("that was said after %s", took)
	}
	begin = time.Now()
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 7*time.Second {
		t.Errorf("with a watch open, the cluster took %s to stop", took)
	}
	back, err := local.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = back.Stop(context.Background()) })
	if back.Server != first.Server {
		t.Errorf("the server moved from %s to %s", first.Server, back.Server)
	}
	nodes, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 2 {
		t.Fatalf("nodes: %d, %v", len(nodes.Items), err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: podTemplate(corev1.RestartPolicyAlways).Spec}
	if _, err := c.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		p, err := c.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil || p.Status.Phase != corev1.PodRunning {
			return rutter.Errorf(rutter.CodeUnavailable, "pod is %s: %v", p.Status.Phase, err)
		}
		return nil
	})
}

func client(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	rc, err := (&local.Cluster{Kubeconfig: kubeconfig}).RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(rc)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDiesWithParent: whoever starts a cluster takes it along, even by SIGKILL,
// and its temporary data too.
func TestDiesWithParent(t *testing.T) {
	if os.Getenv("RUTTER_TEST_PARENT") != "" {
		c, err := local.Start(context.Background(), local.Options{Name: "child", Shape: local.Hub})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(os.Getenv("RUTTER_TEST_PARENT"), []byte(strconv.Itoa(c.PID)+" "+filepath.Dir(c.Kubeconfig)), 0o600); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	file := filepath.Join(t.TempDir(), "pid")
	parent := exec.Command(os.Args[0], "-test.run=TestDiesWithParent$")
	parent.Env = append(os.Environ(), "RUTTER_TEST_PARENT="+file)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	testenv.Eventually(t, 60*time.Second, func() error {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		number, dir, _ := strings.Cut(string(data), " ")
		t.Cleanup(func() { os.RemoveAll(dir) }) // its own end removes it, unless a part of Kubernetes exits first
		pid, err = strconv.Atoi(number)
		return err
	})
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	testenv.Eventually(t, 30*time.Second, func() error {
		if syscall.Kill(pid, 0) == nil {
			return rutter.Errorf(rutter.CodeConflict, "process %d goes on", pid)
		}
		return nil
	})
}

// TestProxy: a cluster can be made to refuse, to hang, and to come back.
func TestProxy(t *testing.T) {
	env := testenv.Hub(t)
	p, err := local.NewProxy(t.Context(), env.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	rc := p.RESTConfig(env.RESTConfig())
	rc.Timeout = 500 * time.Millisecond
	c, err := kubernetes.NewForConfig(rc)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error { _, err := c.Discovery().ServerVersion(); return err }
	if err := ask(); err != nil {
		t.Fatalf("through the proxy: %v", err)
	}
	p.Cut()
	if ask() == nil {
		t.Error("a cluster that was cut off answers")
	}
	p.Restore()
	testenv.Eventually(t, 5*time.Second, ask)
	p.Hang()
	if ask() == nil {
		t.Error("a cluster that hangs answers")
	}
	p.Restore()
	testenv.Eventually(t, 5*time.Second, ask)
	p.SetDelay(200 * time.Millisecond)
	rc.Timeout = 30 * time.Second
	if c, err = kubernetes.NewForConfig(rc); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := ask(); err != nil || time.Since(start) < 200*time.Millisecond {
		t.Errorf("a slow cluster answered after %s: %v", time.Since(start), err)
	}
}

// TestKubectl: a fresh machine has one, by its own name too.
func TestKubectl(t *testing.T) {
	path, err := local.Find()
	if err != nil {
		t.Fatal(err)
	}
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	if err := os.Symlink(path, kubectl); err != nil {
		t.Fatal(err)
	}
	env := testenv.Hub(t)
	for _, command := range [][]string{{path, "kubectl"}, {kubectl}} {
		run := func(args ...string) (string, error) {
			args = append(command[1:len(command):len(command)], append(args, "--kubeconfig", env.Kubeconfig)...) //nolint:gocritic // a copy for this child
			out, err := exec.CommandContext(t.Context(), command[0], args...).CombinedOutput()
			return strings.TrimSpace(string(out)), err
		}
		if out, err := run("get", "namespace", "default", "-o", "name"); err != nil || out != "namespace/default" {
			t.Errorf("%s get: %s, %v", command[0], out, err)
		}
		if out, err := run("version"); err != nil || !strings.Contains(out, "Server Version: v1.") {
			t.Errorf("%s version: %s, %v", command[0], out, err)
		}
		if out, err := run("get", "namespace", "nowhere"); err == nil || out != `Error from server (NotFound): namespaces "nowhere" not found` {
			t.Errorf("%s get of what is not there: %s, %v", command[0], out, err)
		}
	}
}
