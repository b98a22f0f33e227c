package daemon

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/controller/argo"
	"github.com/rutterhq/rutter/internal/forge"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/paramservice"
)

// SetConfig is what the operator decided for all ApplicationSets, as it is
// written: by flags, or else by the keys applicationsetcontroller.* of the
// ConfigMap argocd-cmd-params-cm (reference 15.4). An empty text is not said.
type SetConfig struct {
	Policy               string
	PolicyOverride       string
	DeletionBudget       string
	PreservedAnnotations string
	PreservedLabels      string
	DryRun               string
	Concurrency          string
	NewFileGlobbing      string
	RequeueAfter         string
	ReferenceCollisions  string
	ReferenceTypes       string

	AllowedSCMProviders string
	EnableSCMProviders  string
	StrictTokenRef      string
	SCMRootCA           string
}

// paramKeys are the keys of argocd-cmd-params-cm by what they say. Those of
// Rutter's own are below rutter.
func (c *SetConfig) paramKeys() map[string]*string {
	const p = "applicationsetcontroller."
	return map[string]*string{
		p + "policy": &c.Policy, p + "enable.policy.override": &c.PolicyOverride,
		p + "global.preserved.annotations": &c.PreservedAnnotations, p + "global.preserved.labels": &c.PreservedLabels,
		p + "dryrun": &c.DryRun, p + "concurrent.reconciliations.max": &c.Concurrency,
		p + "enable.new.git.file.globbing": &c.NewFileGlobbing, p + "requeue.after": &c.RequeueAfter,
		p + "allowed.scm.providers": &c.AllowedSCMProviders, p + "enable.scm.providers": &c.EnableSCMProviders,
		p + "enable.tokenref.strict.mode": &c.StrictTokenRef, p + "scm.root.ca.path": &c.SCMRootCA,
		"rutter.applicationset.deletion.budget": &c.DeletionBudget, "rutter.applicationset.reference.collisions": &c.ReferenceCollisions,
		"rutter.applicationset.reference.types": &c.ReferenceTypes,
	}
}

const (
	// forgeTimeout ends one request to a hosting service and forgeWait the waiting
	// for its quota: an evaluation that waits holds a worker, and comes again.
	forgeTimeout = 15 * time.Second
	forgeWait    = 10 * time.Second
)

// setOptions reads what the operator decided; what a flag does not say is
// looked up in the control plane.
func setOptions(ctx context.Context, cfg SetConfig, reader client.Reader, namespace string, log *slog.Logger) (argo.SetOptions, error) {
	var params corev1.ConfigMap
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "argocd-cmd-params-cm"}, &params)
	if client.IgnoreNotFound(err) != nil {
		return argo.SetOptions{}, fmt.Errorf("read ConfigMap argocd-cmd-params-cm: %w", err)
	}
	from := map[*string]string{}
	for key, into := range cfg.paramKeys() {
		if *into == "" {
			*into = strings.TrimSpace(params.Data[key])
			from[into] = "ConfigMap argocd-cmd-params-cm: " + key
		}
	}
	r := &settingReader{from: from}
	opts := argo.SetOptions{
		PreservedAnnotations: listOf(cfg.PreservedAnnotations), PreservedLabels: listOf(cfg.PreservedLabels),
		DryRun: r.yes(&cfg.DryRun, "--applicationset-dry-run", false), Concurrency: r.number(&cfg.Concurrency, "--applicationset-concurrency"),
		Generate: generate.Options{
			NewFileGlobbing:     r.yes(&cfg.NewFileGlobbing, "--enable-new-git-file-globbing", false),
			ReferenceCollisions: r.yes(&cfg.ReferenceCollisions, "--applicationset-reference-collisions", false),
			ReferenceTypes:      r.yes(&cfg.ReferenceTypes, "--applicationset-reference-types", false),
			Requeue:             generate.RequeueDefaults{Polled: r.pause(&cfg.RequeueAfter, "--applicationset-requeue-after")},
		},
		Parameters: services{paramservice.New()},
	}
	opts.Policy = r.policy(&cfg.Policy)
	// The reference lets sets choose unless the operator chose for them (5.11).
	opts.AllowOverride = r.yes(&cfg.PolicyOverride, "--enable-policy-override", opts.Policy == "")
	if opts.Policy == "" && !opts.AllowOverride { // the default, and it holds for all
		opts.Policy = v1alpha1.ApplicationsSyncPolicySync
	}
	if cfg.DeletionBudget != "" {
		b, err := generate.ParseBudget(cfg.DeletionBudget)
		r.note(&cfg.DeletionBudget, "--deletion-budget", err)
		opts.Budget = &b
	}
	r.forges(&cfg, &opts, forge.Options{Logger: log}, &argo.Vault{Reader: reader, Namespace: namespace, Now: time.Now})
	return opts, r.err
}

// forges lets generators ask hosting services, unless the operator turned that off.
func (r *settingReader) forges(cfg *SetConfig, opts *argo.SetOptions, o forge.Options, vault *argo.Vault) {
	vault.Strict = r.yes(&cfg.StrictTokenRef, "--enable-tokenref-strict-mode", false)
	o.Hosts = r.hosts(&cfg.AllowedSCMProviders)
	opts.ForgesListed = len(o.Hosts) > 0
	if cfg.SCMRootCA != "" {
		o.RootCA = r.certificates(&cfg.SCMRootCA)
	}
	if !r.yes(&cfg.EnableSCMProviders, "--enable-scm-providers", true) {
		return
	}
	o.Secrets, o.ConfigMap, o.GitHubApp, o.AWS = vault.Secret, vault.ConfigMap, vault.GitHubApp, forge.MachineIdentity()
	o.Timeout, o.MaxWait = forgeTimeout, forgeWait
	opts.Forges, opts.PermitApp = forge.New(o), vault.PermitApp
}

// hosts are the APIs that may be asked. An entry that matches nothing would be
// found out only by the set that it was meant for.
func (r *settingReader) hosts(at *string) []string {
	hosts := listOf(*at)
	for _, h := range hosts {
		u, err := url.Parse(h)
		if !strings.Contains(h, "://") {
			u, err = url.Parse("https://" + h)
		}
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" {
			r.note(at, "--allowed-scm-providers", rutter.Errorf(rutter.CodeInvalid, "%q: write a host, or the beginning of an API such as https://git.example.com/", h))
		}
	}
	return hosts
}

func (r *settingReader) certificates(at *string) string {
	roots, err := os.ReadFile(*at)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(roots) {
		err = rutter.Errorf(rutter.CodeInvalid, "%s holds no certificate: write it as PEM", *at)
	}
	r.note(at, "--scm-root-ca-path", err)
	return string(roots)
}

// settingReader reads settings and keeps the first that cannot be read.
type settingReader struct {
	from map[*string]string
	err  error
}

func (r *settingReader) note(at *string, flag string, err error) {
	if err == nil || r.err != nil {
		return
	}
	where := flag
	if w := r.from[at]; w != "" {
		where = w
	}
	r.err = rutter.Errorf(rutter.CodeInvalid, "%s: %w", where, err)
}

func (r *settingReader) yes(at *string, flag string, otherwise bool) bool {
	if *at == "" {
		return otherwise
	}
	yes, err := strconv.ParseBool(*at)
	if err != nil {
		r.note(at, flag, rutter.Errorf(rutter.CodeInvalid, "%q: write true or false", *at))
	}
	return yes
}

func (r *settingReader) number(at *string, flag string) int {
	if *at == "" {
		return 0
	}
	n, err := strconv.Atoi(*at)
	if err != nil || n < 1 {
		r.note(at, flag, rutter.Errorf(rutter.CodeInvalid, "%q: write a number, 1 or more", *at))
	}
	return n
}

func (r *settingReader) pause(at *string, flag string) time.Duration {
	if *at == "" {
		return 0
	}
	d, err := time.ParseDuration(*at)
	if err != nil || d <= 0 {
		r.note(at, flag, rutter.Errorf(rutter.CodeInvalid, "%q: write a time such as 3m", *at))
	}
	return d
}

func (r *settingReader) policy(at *string) v1alpha1.ApplicationsSyncPolicy {
	p := v1alpha1.ApplicationsSyncPolicy(*at)
	switch p {
	case "", v1alpha1.ApplicationsSyncPolicySync, v1alpha1.ApplicationsSyncPolicyCreateOnly,
		v1alpha1.ApplicationsSyncPolicyCreateUpdate, v1alpha1.ApplicationsSyncPolicyCreateDelete:
		return p
	}
	r.note(at, "--policy", rutter.Errorf(rutter.CodeInvalid, "%q: write sync, create-only, create-update or create-delete", *at))
	return p
}

func listOf(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// services asks services of parameters for the controllers.
type services struct{ client *paramservice.Client }

// Ask implements argo.Parameters.
func (s services) Ask(ctx context.Context, to argo.ParameterService, set string, input map[string]any) ([]map[string]any, error) {
	return s.client.Ask(ctx, paramservice.Service{BaseURL: to.BaseURL, Token: to.Token, Timeout: time.Duration(to.TimeoutSeconds) * time.Second}, set, input)
}
