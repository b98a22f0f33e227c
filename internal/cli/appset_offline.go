package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	klabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// offlineFacts answers generators from files.
type offlineFacts struct {
	ctx      context.Context //nolint:containedctx // lives for one command
	r        *root
	local    map[string]string
	clusters []rutter.ClusterInfo

	configMaps map[string]map[string]string
	placements []*unstructured.Unstructured
	answers    *offlineAnswers
	// text is the file with the sets, and told what was said of revisions.
	text []byte
	told map[rutter.Repo]bool
}

// offlineAnswers are what services would answer to every question of their kind.
type offlineAnswers struct {
	Repositories []rutter.ForgeRepo        `json:"repositories"`
	PullRequests []rutter.ForgePullRequest `json:"pullRequests"`
	Parameters   []map[string]any          `json:"parameters"`
}

var (
	_ generate.Facts         = (*offlineFacts)(nil)
	_ generate.ForgeFacts    = (*offlineFacts)(nil)
	_ generate.DecisionFacts = (*offlineFacts)(nil)
	_ generate.PluginFacts   = (*offlineFacts)(nil)
)

// read takes in the files of objects and answers.
func (f *offlineFacts) read(flags *generateFlags) error {
	if flags.objects != "" {
		objects, err := f.r.readObjects(flags.objects)
		if err != nil {
			return err
		}
		f.configMaps = map[string]map[string]string{}
		for _, o := range objects {
			switch x := o.(type) {
			case *corev1.ConfigMap:
				f.configMaps[x.Name] = x.Data
			case *unstructured.Unstructured:
				f.placements = append(f.placements, x)
			}
		}
	}
	if flags.answers == "" {
		return nil
	}
	data, err := os.ReadFile(flags.answers)
	if err != nil {
		return rutter.Errorf(rutter.CodeNotFound, "--answers: %w", err)
	}
	f.answers = &offlineAnswers{}
	if err := yaml.UnmarshalStrict(data, f.answers); err != nil {
		return rutter.Errorf(rutter.CodeInvalid, "--answers %s: %w; write lists named repositories, pullRequests or parameters", flags.answers, err)
	}
	return nil
}

// Clusters implements generate.Facts.
func (f *offlineFacts) Clusters() ([]rutter.ClusterInfo, error) { return f.clusters, nil }

// Snapshot implements generate.Facts.
func (f *offlineFacts) Snapshot(repo rutter.Repo) (rutter.Snapshot, error) {
	snap, err := f.r.deps.Snapshot(f.ctx, f.local, repo)
	if err == nil {
		f.tellRevision(snap, repo)
	}
	return snap, err
}

// tellRevision says, once for each, that a revision is not looked at, where the files
// of a folder are taken as they lie there.
func (f *offlineFacts) tellRevision(snap rutter.Snapshot, repo rutter.Repo) {
	key := rutter.Repo{URL: repo.URL, Revision: repo.Revision}
	if repo.Revision == "" || repo.Revision == "HEAD" || strings.Trim(snap.Revision(), "0") != "" || f.told[key] {
		return
	}
	if f.told == nil {
		f.told = map[rutter.Repo]bool{}
	}
	f.told[key] = true
	dir := f.local[rutter.NormalizeGitURL(repo.URL)]
	fmt.Fprintf(f.r.err, "rutter: %s: the files of %s are taken as they lie there, and not those of revision %s: give a bare repository (git clone --bare) to have revisions read\n", repo.URL, dir, repo.Revision)
}

// words says which words in the generators of a set are read as booleans.
func (f *offlineFacts) words(set *v1alpha1.ApplicationSet) {
	raw, err := json.Marshal(set.Spec.Generators)
	var tree any
	if err != nil || json.Unmarshal(raw, &tree) != nil {
		return // it was read from JSON
	}
	for _, w := range generate.BooleanWords(f.text, tree) {
		fmt.Fprintf(f.r.err, "rutter: ApplicationSet %s: warning: spec.generators: %s\n", set.Name, w)
	}
}

// asked is the error of a question that nothing is contacted for.
func asked(flag, what string) error {
	return rutter.Errorf(rutter.CodeUnsupported, "%s are not asked: write them to a file and name it with %s", what, flag)
}

// Repositories implements generate.ForgeFacts.
func (f *offlineFacts) Repositories(rutter.ForgeQuery) ([]rutter.ForgeRepo, error) {
	if f.answers == nil || f.answers.Repositories == nil {
		return nil, asked("--answers", "hosting services")
	}
	return f.answers.Repositories, nil
}

// PullRequests implements generate.ForgeFacts.
func (f *offlineFacts) PullRequests(rutter.ForgeQuery) ([]rutter.ForgePullRequest, error) {
	if f.answers == nil || f.answers.PullRequests == nil {
		return nil, asked("--answers", "hosting services")
	}
	return f.answers.PullRequests, nil
}

// PathExists implements generate.ForgeFacts, by the repositories that are given.
func (f *offlineFacts) PathExists(_ rutter.ForgeQuery, repo rutter.ForgeRepo, path string) (bool, error) {
	snap, err := f.r.deps.Snapshot(f.ctx, f.local, rutter.Repo{URL: repo.URL, Revision: repo.Branch})
	if err != nil {
		return false, err
	}
	_, err = snap.Stat(strings.Trim(path, "/"))
	return err == nil, nil
}

// ConfigMap implements generate.DecisionFacts.
func (f *offlineFacts) ConfigMap(name string) (map[string]string, error) {
	if f.configMaps == nil {
		return nil, asked("--objects", "placements and their ConfigMaps")
	}
	data, ok := f.configMaps[name]
	if !ok {
		return nil, rutter.Errorf(rutter.CodeNotFound, "--objects holds no ConfigMap %q", name)
	}
	return data, nil
}

// Resources implements generate.DecisionFacts.
func (f *offlineFacts) Resources(q generate.ResourceQuery) ([]map[string]any, error) {
	selector, err := metav1.LabelSelectorAsSelector(&q.Selector)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "labelSelector: %w", err)
	}
	var out []map[string]any
	for _, o := range f.placements {
		plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if o.GetAPIVersion() != q.APIVersion || plural.Resource != strings.ToLower(q.Resource) {
			continue
		}
		if q.Name == o.GetName() || q.Name == "" && selector.Matches(klabels.Set(o.GetLabels())) {
			out = append(out, o.Object)
		}
	}
	if len(out) == 0 && q.Name != "" {
		return nil, rutter.Errorf(rutter.CodeNotFound, "--objects holds no %s %q", q.Resource, q.Name)
	}
	return out, nil
}

// PluginParameters implements generate.PluginFacts.
func (f *offlineFacts) PluginParameters(generate.PluginQuery) ([]map[string]any, error) {
	if f.answers == nil || f.answers.Parameters == nil {
		return nil, asked("--answers", "services of plugins")
	}
	return f.answers.Parameters, nil
}

// elementRow is an element in the JSON of appset generate --params.
type elementRow struct {
	Set      string `json:"set"`
	Producer string `json:"producer"`
	Index    int    `json:"index"`
	Name     string `json:"name,omitempty"`
	Error    string `json:"error,omitempty"`
	// Parameters are what the template is rendered with; From names the generator
	// that each came from.
	Parameters map[string]any    `json:"parameters"`
	From       map[string]string `json:"from"`
}

func elementRows(set string, elements []generate.Element) []elementRow {
	rows := make([]elementRow, 0, len(elements))
	for i := range elements {
		e := &elements[i]
		row := elementRow{Set: set, Producer: e.Producer, Index: e.Index, Name: e.Name, Parameters: e.Params, From: e.Producers()}
		if e.Err != nil {
			row.Error = e.Err.Error()
		}
		rows = append(rows, row)
	}
	return rows
}

// printElements writes elements with their parameters.
func (r *root) printElements(rows []elementRow) error {
	t := table{header: []string{"ELEMENT", "NAME", "PARAMETER", "VALUE", "FROM"}}
	for _, row := range rows {
		element, name := fmt.Sprintf("%s[%d]", row.Producer, row.Index), orDash(row.Name)
		keys := make([]string, 0, len(row.Parameters))
		for k := range row.Parameters {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			value, err := shownValue(row.Parameters[k])
			if err != nil {
				return err
			}
			t.rows = append(t.rows, []string{element, name, k, value, row.From[k]})
			element, name = "", ""
		}
	}
	return r.print(rows, t)
}
