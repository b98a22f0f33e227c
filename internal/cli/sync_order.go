package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// orderStep is one line of the order of a sync. What has the same step goes side by side.
type orderStep struct {
	Phase     string `json:"phase"`
	Wave      int    `json:"wave"`
	Step      int    `json:"step"`
	Action    string `json:"action"`
	Hook      bool   `json:"hook,omitempty"`
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Reason    string `json:"reason,omitempty"`
}

type orderFlags struct {
	paths, live, options []string
	output               string
}

func (r *root) syncCommand() *cobra.Command {
	c := &cobra.Command{Use: "sync", Short: "Look at what a sync would do, from files"}
	f := &orderFlags{}
	order := &cobra.Command{
		Use: "order -f PATH... [--live PATH...]", Short: "Print the steps that a sync of manifests would take, in their order", Args: cobra.NoArgs,
		Long: "Reads manifests and prints what a full sync of them does, in its order: phases, waves, and within a wave first the removals and then\n" +
			"kind after kind. What has the same step is sent side by side. Between two waves or phases everything has to be healthy. With --live\n" +
			"(objects of the application as kubectl get -o yaml prints them) what is live and not declared is pruned, in reversed waves.\n\n" +
			"PATH is a file, a folder or - for standard input. Everything declared is taken for changed. No cluster is asked.",
		Example: "  rutter sync order -f manifests/\n  kustomize build . | rutter sync order -f - --live live.yaml -o json",
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if !slices.Contains([]string{"table", "json", "yaml"}, f.output) {
				return rutter.Errorf(rutter.CodeInvalid, "-o %q: use table, json or yaml", f.output)
			}
			if len(f.paths) == 0 {
				return rutter.Errorf(rutter.CodeInvalid, "name files or folders with -f; - is standard input")
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return r.syncOrder(f) },
	}
	fl := order.Flags()
	fl.StringArrayVarP(&f.paths, "filename", "f", nil, "manifests: file, folder, or - for standard input; repeatable")
	fl.StringArrayVar(&f.live, "live", nil, "objects of the application that are live: file or folder; repeatable")
	fl.StringArrayVar(&f.options, "sync-option", nil, "sync option of the application, such as PruneLast=true; repeatable")
	fl.StringVarP(&f.output, "output", "o", "table", "output: table, json or yaml")
	c.AddCommand(order)
	return c
}

func (r *root) syncOrder(f *orderFlags) error {
	desired, err := r.readManifests(f.paths)
	if err != nil {
		return err
	}
	live, err := r.readManifests(f.live)
	if err != nil {
		return err
	}
	steps, left := orderOf(desired, live, f.options)
	r.output = f.output
	t := table{header: []string{"STEP", "PHASE", "WAVE", "ACTION", "OBJECT"}}
	for _, s := range steps {
		t.rows = append(t.rows, []string{strconv.Itoa(s.Step), s.Phase, strconv.Itoa(s.Wave), s.Action, rutter.Ref{Group: s.Group, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}.String()})
	}
	for _, s := range left {
		fmt.Fprintf(r.err, "rutter: not part of the sync: %s: %s\n", s.Ref, s.Reason)
	}
	return r.print(steps, t)
}

// orderOf plans a full sync in which everything is sent.
func orderOf(desired, live []*unstructured.Unstructured, options []string) (steps []orderStep, left []rutter.Step) {
	in := plan.Input{Policy: rutter.SyncPolicy{AllowEmpty: true, Options: options}, Request: rutter.SyncRequest{Prune: true}, Complete: true, Verdicts: map[rutter.Ref]rutter.Verdict{}}
	declared := map[rutter.Ref]bool{}
	for _, u := range desired {
		d := plan.Desired{Ref: rutter.RefOf(u), Meta: plan.MetaOf(u.GetAnnotations())}
		if d.Ref.Name == "" {
			d.Ref.Name = u.GetGenerateName() + "*"
		}
		d.DefinesGroup, d.DefinesKind = plan.Defines(u)
		declared[d.Ref] = true
		in.Desired = append(in.Desired, d)
	}
	for _, u := range live {
		ref, meta := rutter.RefOf(u), plan.MetaOf(u.GetAnnotations())
		if declared[ref] || meta.IsHook {
			continue
		}
		in.Extras = append(in.Extras, plan.Extra{Ref: ref, Version: u.GroupVersionKind().Version, Meta: meta, Protected: plan.NeverPruned(ref),
			Justified: "it is not declared", Verdict: rutter.Verdict{Exists: true, UID: string(u.GetUID()) + "-"}})
	}
	p := plan.Compute(in)
	steps, n := []orderStep{}, 0
	for _, g := range p.Groups {
		for _, batch := range g.Batches {
			n++
			for _, s := range batch {
				steps = append(steps, orderStep{Phase: string(g.Phase), Wave: g.Wave, Step: n, Action: string(s.Action), Hook: s.Hook,
					Group: s.Ref.Group, Kind: s.Ref.Kind, Namespace: s.Ref.Namespace, Name: s.Ref.Name})
			}
		}
	}
	return steps, p.Left
}

// readManifests reads all objects of files and folders, also those without a name.
func (r *root) readManifests(paths []string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, path := range paths {
		files, err := healthFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := r.readFile(file)
			if err != nil {
				return nil, err
			}
			objects, err := manifestsOf(file, data)
			if err != nil {
				return nil, err
			}
			out = append(out, objects...)
		}
	}
	return out, nil
}

func manifestsOf(file string, data []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	reader, line := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))), 1
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s:%d: %w", file, line, err)
		}
		raw, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s:%d: %w", file, line, withoutKeys(err))
		}
		var v map[string]any
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s:%d: it is no object: it must have apiVersion, kind and metadata", file, line)
		}
		objects, err := objectsOf(v)
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s:%d: %w", file, line, err)
		}
		out = append(out, objects...)
		line += bytes.Count(doc, []byte("\n")) + 1
	}
}

// objectsOf is an object, or those of a list.
func objectsOf(v map[string]any) ([]*unstructured.Unstructured, error) {
	if v == nil {
		return nil, nil
	}
	u := &unstructured.Unstructured{Object: v}
	items, list := v["items"].([]any)
	if !list || u.GetName() != "" {
		if u.GetAPIVersion() == "" || u.GetKind() == "" || u.GetName() == "" && u.GetGenerateName() == "" {
			return nil, rutter.Errorf(rutter.CodeInvalid, "it is no object: it must have apiVersion, kind and metadata.name")
		}
		return []*unstructured.Unstructured{u}, nil
	}
	var out []*unstructured.Unstructured
	for i, item := range items {
		m, _ := item.(map[string]any)
		one, err := objectsOf(m)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		out = append(out, one...)
	}
	return out, nil
}
