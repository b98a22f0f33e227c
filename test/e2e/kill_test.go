package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/local"
	"github.com/rutterhq/rutter/internal/testenv"
)

const (
	killObjects = 200
	killAfter   = 60
)

// TestKill kills the controller, a process of its own here, in the middle of a
// sync of 200 objects and starts it again. The member is its control plane, so
// that it does not meet the controller of the other tests.
func TestKill(t *testing.T) {
	w := start(t)
	if err := daemon.Install(t.Context(), w.alpha.rest, controlNamespace); err != nil {
		t.Fatal(err)
	}
	files := tree{"small/c.yaml": configMap("small", "1") + "---\n" + configMap("other", "1")}
	for i := range killObjects {
		files[fmt.Sprintf("big/c%03d.yaml", i)] = configMap(fmt.Sprintf("c%03d", i), "1")
	}
	r := w.repo(t, "kill", files)
	big, small := w.alpha.namespace(t, "kill-big"), w.alpha.namespace(t, "kill-small")
	bigApp, smallApp := unique("kill-big"), unique("kill-small")
	control := &world{hub: w.alpha, alpha: w.alpha}
	data := t.TempDir()
	slow, err := local.NewProxy(t.Context(), w.alpha.rest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slow.Close)

	first := startProcess(t, slow.RESTConfig(w.alpha.rest), data)
	control.create(t, inCluster(smallApp, "small"), vars{"REPO": r.url, "NS": small})
	control.awaitSynced(t, smallApp, "")
	smallBefore := versions(t, w.alpha, small)

	slow.SetDelay(10 * time.Millisecond)
	control.create(t, inCluster(bigApp, "big"), vars{"REPO": r.url, "NS": big})
	testenv.Eventually(t, patience, func() error {
		if n := len(versions(t, w.alpha, big)); n < killAfter {
			return fmt.Errorf("%d objects are there", n)
		}
		return nil
	})
	first.kill(t)
	slow.Cut() // what was still on its way does not arrive later
	before := versions(t, w.alpha, big)
	if len(before) >= killObjects {
		t.Fatalf("the sync was over before the kill: %d objects", len(before))
	}
	t.Logf("killed with %d of %d objects applied", len(before), killObjects)

	second := startProcess(t, w.alpha.rest, data)
	begun := time.Now()
	control.awaitSynced(t, bigApp, "")
	t.Logf("all Synced %s after the new start", time.Since(begun).Round(time.Millisecond))
	control.awaitSynced(t, smallApp, "")
	after := versions(t, w.alpha, big)
	if len(after) != killObjects {
		t.Errorf("%d objects are there, wanted %d", len(after), killObjects)
	}
	unchanged(t, before, after)
	unchanged(t, smallBefore, versions(t, w.alpha, small))
	if n := counter(t, second.addr, "rutter_objects_applied_total"); int(n) > killObjects-len(before) {
		t.Errorf("%v objects were sent, of which only %d were missing", n, killObjects-len(before))
	}
	if n := counter(t, second.addr, "rutter_objects_removed_total"); n != 0 {
		t.Errorf("%v objects were removed", n)
	}
	second.kill(t)
	restartBlind(t, control, r, big, bigApp, smallApp)
}

// restartBlind starts a controller that has lost its mirrors and renders while
// the repository is away: it knows nothing, says so, and touches nothing.
func restartBlind(t *testing.T, control *world, r *repo, ns, bigApp, smallApp string) {
	t.Helper()
	before := versions(t, control.alpha, ns)
	if err := os.Rename(r.bare, r.bare+".away"); err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, control.alpha.rest, t.TempDir())
	control.unknown(t, bigApp, r.url)
	control.unknown(t, smallApp, r.url)
	unchanged(t, before, versions(t, control.alpha, ns))

	if err := os.Rename(r.bare+".away", r.bare); err != nil {
		t.Fatal(err)
	}
	pushed(t, p.addr, r.url)
	control.awaitSynced(t, bigApp, "")
	control.awaitSynced(t, smallApp, "")
	unchanged(t, before, versions(t, control.alpha, ns))
	for _, name := range []string{"rutter_objects_applied_total", "rutter_objects_removed_total"} {
		if n := counter(t, p.addr, name); n != 0 {
			t.Errorf("%s is %v after a start with nothing to do", name, n)
		}
	}
	p.kill(t)
}

func inCluster(name, path string) string {
	return strings.Replace(application(name, path, ""), "name: alpha", "server: https://kubernetes.default.svc", 1)
}

// versions are uid and resourceVersion of the ConfigMaps that Rutter manages in
// a namespace.
func versions(t *testing.T, c *cluster, ns string) map[string]string {
	t.Helper()
	var list corev1.ConfigMapList
	if err := c.client.List(t.Context(), &list, client.InNamespace(ns), client.HasLabels{"rutter.dev/unit"}); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Items {
		out[list.Items[i].Name] = string(list.Items[i].UID) + "@" + list.Items[i].ResourceVersion
	}
	return out
}

func unchanged(t *testing.T, before, after map[string]string) {
	t.Helper()
	for name, version := range before {
		if after[name] != version {
			t.Errorf("%s was written or replaced: %s is now %q", name, version, after[name])
		}
	}
}

// process is a controller that is a process of its own.
type process struct {
	cmd  *exec.Cmd
	addr string
}

// startProcess starts a controller and waits until it is ready.
func startProcess(t *testing.T, rc *rest.Config, data string) *process {
	t.Helper()
	kubeconfig := writeKubeconfig(t, rc)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.CommandContext(context.WithoutCancel(t.Context()), self)}
	p.cmd.Env = append(os.Environ(), envKubeconfig+"="+kubeconfig, envData+"="+data)
	logs, err := os.Create(filepath.Join(t.TempDir(), "controller.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	p.cmd.Stderr = logs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may be gone already
		_ = p.cmd.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(logs.Name())
			t.Logf("the controller's log ends:\n%s", log[max(0, len(log)-4000):])
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the controller did not start: %v", err)
	}
	p.addr = strings.TrimSpace(line)
	if err := awaitReady(t.Context(), p.addr); err != nil {
		t.Fatal(err)
	}
	return p
}

// kill ends the process as a crash would, and waits for its end.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // it says that it was killed
}

func writeKubeconfig(t *testing.T, rc *rest.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	cfg := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: rc.Host, CertificateAuthorityData: rc.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: rc.CertData, ClientKeyData: rc.KeyData, Token: rc.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}
	if len(rc.CAData) == 0 {
		cfg.Clusters["c"].CertificateAuthority = rc.CAFile
		cfg.AuthInfos["u"].ClientCertificate, cfg.AuthInfos["u"].ClientKey = rc.CertFile, rc.KeyFile
	}
	if err := clientcmd.WriteToFile(cfg, file); err != nil {
		t.Fatal(err)
	}
	return file
}
