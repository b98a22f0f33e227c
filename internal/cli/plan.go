package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/preview"
)

// leastBytes is about what the numbers and the digest of a plan need, and mostBytes
// more than any service takes as a comment.
const leastBytes, mostBytes = 500, 10_000_000

// ExitBlocked says that a plan is over budget or refused.
const ExitBlocked = 3

// planOutputs are the forms of a plan.
var planOutputs = []string{"table", "markdown", "json", "html"}

type planFlags struct {
	repo, base, head      string
	roots, urls, branches []string
	inventory             string
	live, offline, all    bool
	output                string
	maxBytes              int
	kubeVersion           string
	cacheDir              string
	plugins               string
	pluginTools           []string
	approve               string
}

func (r *root) planCommand() *cobra.Command {
	f := &planFlags{}
	c := &cobra.Command{
		Use: "plan --base REVISION", Short: "Show what a change of a repository would do to the whole fleet, before it is merged", Args: cobra.NoArgs,
		Long: "Renders the repository at two revisions with the controller's own code and prints what would happen if the head took the base's place:\n" +
			"sets and Applications that change, then every object on every cluster, equal changes folded, deletions first; what the deletion budget\n" +
			"would hold, what the projects refuse, and what is risky. Nothing is changed anywhere; without --live no cluster is asked.\n\n" +
			"Exit codes: 0 nothing changes, 1 something does, 2 something could not be looked at, 3 over budget or refused.",
		Example: "  rutter plan --base origin/main\n" +
			"  rutter plan --base origin/main --head worktree --inventory fleet/clusters.yaml\n" +
			"  rutter plan --base origin/main --root clusters/ -o markdown > comment.md",
		// It has forms of its own.
		PersistentPreRunE: func(*cobra.Command, []string) error { return f.check() },
		RunE:              func(c *cobra.Command, _ []string) error { return r.plan(c.Context(), f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.repo, "repo", ".", "clone of the repository")
	fl.StringVar(&f.base, "base", "", "revision that is deployed now, such as origin/main")
	fl.StringVar(&f.head, "head", "HEAD", "revision that is to be merged; worktree means the files as they lie on disk")
	fl.StringArrayVar(&f.roots, "root", nil, "folder or folders in which Applications, ApplicationSets and AppProjects are looked for (default: the whole repository)")
	fl.StringArrayVar(&f.urls, "url", nil, "address by which Applications name this repository, repeatable (default: those of the clone's remotes)")
	fl.StringArrayVar(&f.branches, "branch", nil, "revision of this repository that means the one that is looked at, repeatable (default: HEAD, the default branch, and --base where it is a branch)")
	fl.StringVar(&f.inventory, "inventory", "", "file with the clusters, as 'rutter cluster export' writes it")
	fl.BoolVar(&f.live, "live", false, "ask the control plane for clusters, projects, credentials, keys and settings")
	fl.BoolVar(&f.offline, "offline", false, "fetch no other repository")
	fl.StringVarP(&f.output, "output", "o", "table", "output: "+strings.Join(planOutputs, ", "))
	fl.IntVar(&f.maxBytes, "max-bytes", preview.DefaultMarkdownBytes, "most bytes of -o markdown; what does not fit is folded into numbers")
	fl.BoolVar(&f.all, "all", false, "show all that changes, and not only what fits a screen")
	fl.StringVar(&f.kubeVersion, "kube-version", defaultKubeVersion, "Kubernetes version that charts see of a cluster whose version is not known")
	fl.StringVar(&f.cacheDir, "cache-dir", "", "folder for mirrors and renders (default: rutter in the user's cache folder)")
	fl.StringVar(&f.plugins, "plugins", "", "folder of ConfigManagementPlugin files")
	fl.StringSliceVar(&f.pluginTools, "plugin-tools", nil, "folders with programs that plugins may run, beside the system's")
	fl.StringVar(&f.approve, "approve", "", "digest of the plan: if this is still it, approve the removals that the deletion budget holds back; needs --live")
	_ = c.MarkFlagRequired("base") // the flag exists
	return c
}

func (f *planFlags) check() error {
	if !slices.Contains(planOutputs, f.output) {
		return rutter.Errorf(rutter.CodeInvalid, "-o %q: use %s", f.output, strings.Join(planOutputs, ", "))
	}
	if f.maxBytes < leastBytes || f.maxBytes > mostBytes {
		return rutter.Errorf(rutter.CodeInvalid, "--max-bytes %d: use %d to %d", f.maxBytes, leastBytes, mostBytes)
	}
	if f.offline && f.live {
		return rutter.Errorf(rutter.CodeInvalid, "--offline and --live exclude each other")
	}
	if f.approve != "" && !f.live {
		return rutter.Errorf(rutter.CodeInvalid, "--approve needs --live: an approval is written to the control plane")
	}
	return nil
}

// plan computes and prints. The exit code says what was found.
func (r *root) plan(ctx context.Context, f *planFlags) error {
	o := PlanOptions{Repo: f.repo, Base: f.base, Head: f.head, Roots: f.roots, URLs: f.urls, Branches: f.branches, Namespace: r.namespace, Offline: f.offline,
		KubeVersion: f.kubeVersion, CacheDir: f.cacheDir, Plugins: f.plugins, PluginTools: f.pluginTools}
	if f.inventory != "" {
		data, err := os.ReadFile(f.inventory)
		if err != nil {
			return rutter.Errorf(rutter.CodeNotFound, "--inventory: %w", err)
		}
		inv, err := preview.ParseInventory(data, f.inventory)
		if err != nil {
			return err
		}
		o.Inventory = &inv
	}
	if f.live {
		var err error
		if o.REST, err = r.rest(); err != nil {
			return err
		}
	}
	p, err := r.deps.Plan(ctx, o)
	if err != nil {
		return err
	}
	if f.approve != "" {
		return r.approvePlan(ctx, p, f)
	}
	if err := r.printPlan(p, f); err != nil {
		return err
	}
	return planExit(p)
}

// approvePlan writes the approvals of all that a plan holds back, if it is the
// plan that was looked at. The controller heeds each for exactly these
// Applications of exactly this set, before the merge or after it.
func (r *root) approvePlan(ctx context.Context, p preview.Plan, f *planFlags) error {
	if p.Digest != f.approve {
		if err := r.printPlan(p, f); err != nil {
			return err
		}
		fmt.Fprintf(r.err, "rutter: the plan is not %s any more, and nothing was approved: look at it again\n", f.approve)
		return exit{code: ExitBlocked}
	}
	if p.Summary.Errors > 0 {
		return rutter.Errorf(rutter.CodeInvalid, "the plan has %d errors: what could not be looked at cannot be approved", p.Summary.Errors)
	}
	for _, h := range p.Held { // all of it or nothing
		if h.Digest == "" {
			return rutter.Errorf(rutter.CodeNotFound, "set %s, or what it would delete, is not on the control plane: nothing was approved; approve it after the merge, with rutter approve appset/%s", h.Set, setName(h))
		}
	}
	cl, err := r.client()
	if err != nil {
		return err
	}
	for _, h := range p.Held {
		var set v1alpha1.ApplicationSet
		if err := cl.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: setName(h)}, &set); err != nil {
			return fmt.Errorf("read ApplicationSet %q in namespace %q: %w", setName(h), h.Namespace, err)
		}
		if err := annotateApproval(ctx, cl, &set, h.Digest); err != nil {
			return err
		}
		fmt.Fprintf(r.out, "approved: ApplicationSet %s may delete exactly these %d Applications: %s\n", h.Set, len(h.Applications), strings.Join(h.Applications, ", "))
	}
	if len(p.Held) == 0 {
		fmt.Fprintln(r.out, "the deletion budget holds nothing of this plan back: nothing needs an approval")
	}
	return nil
}

// setName is the name of a set without its namespace.
func setName(h preview.Held) string { return h.Set[strings.LastIndex(h.Set, "/")+1:] }

func planExit(p preview.Plan) error {
	switch {
	case p.Summary.Errors > 0:
		return exit{code: ExitError}
	case p.Blocked():
		return exit{code: ExitBlocked}
	case !p.Empty():
		return exit{code: ExitDifferent}
	}
	return nil
}

func (r *root) printPlan(p preview.Plan, f *planFlags) error {
	switch f.output {
	case "json":
		enc := json.NewEncoder(r.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(p); err != nil {
			return fmt.Errorf("write json: %w", err)
		}
		return nil
	case "markdown":
		fmt.Fprint(r.out, preview.Markdown(p, f.maxBytes))
		return nil
	case "html":
		page, err := preview.HTML(p)
		if err != nil {
			return err
		}
		fmt.Fprint(r.out, page)
		return nil
	}
	o := preview.TextOptions{Width: r.width()}
	if f.all {
		o.Groups = -1
	}
	fmt.Fprint(r.out, preview.Text(p, o))
	return nil
}

// width is the terminal's; what is no terminal is as wide as can be read.
func (r *root) width() int {
	const wide = 160
	if f, ok := r.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return wide
}
