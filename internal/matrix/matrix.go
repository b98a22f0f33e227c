package matrix

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// Column is what one Application has on one cluster.
type Column struct {
	// Name heads the column: the cluster, or cluster/application where it has several.
	Name        string `json:"name"`
	Cluster     string `json:"cluster"`
	Application string `json:"application"`
	Revision    string `json:"revision,omitempty"`
	// Problem is why it is not compared; the rest is then empty.
	Problem string `json:"problem,omitempty"`

	// Namespace is the destination's: it is not counted as a difference.
	Namespace string `json:"-"`
	// Objects are declared; their values are those that are sent.
	Objects []rutter.Object `json:"-"`
	// Report says how the cluster differs from that.
	Report rutter.Report `json:"-"`
	// Files are what the render read, and Settings what the Application itself sets,
	// by their fields: both are where a value may come from.
	Files    []File    `json:"-"`
	Settings []Setting `json:"-"`
}

// File is one file that was read.
type File struct {
	Path string
	Data []byte
}

// Setting is a value that an Application gives its tool.
type Setting struct{ Field, Value string }

// Verdict is whether a difference was meant.
type Verdict string

// The verdicts. Both is a field that is declared differently and has drifted too.
const (
	Intended   Verdict = "intended"
	Accidental Verdict = "accidental"
	Both       Verdict = "both"
)

// Matrix is what differs between clusters.
type Matrix struct {
	Columns []Column `json:"columns"`
	Rows    []Row    `json:"rows"`
	// Equal counts the objects that are the same everywhere.
	Equal int `json:"equalObjects"`
}

// Row is one field that is not the same everywhere, or a whole object.
type Row struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Field is empty where it is about the whole object.
	Field   string  `json:"field,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Cells are the columns that agree, the largest group first.
	Cells []Cell `json:"cells"`
}

// Cell is what some columns have.
type Cell struct {
	Columns []string `json:"columns"`
	// Declared is what Git says, as JSON; empty where it says nothing.
	Declared string `json:"declared,omitempty"`
	// Live is what the cluster has instead, where it drifted; empty with Drifted for a
	// field, or an object, that is not there.
	Drifted bool   `json:"drifted,omitempty"`
	Live    string `json:"live,omitempty"`
	// Because says where the declared value comes from, or who wrote the live one.
	Because string `json:"because,omitempty"`
}

// Of compares columns. Those with a problem are not compared.
func Of(columns []Column) Matrix {
	m := Matrix{Columns: columns, Rows: []Row{}}
	var sides []*side
	for i := range columns {
		if columns[i].Problem == "" {
			sides = append(sides, newSide(&columns[i]))
		}
	}
	origins := newOrigins(sides)
	masks := newMasks()
	for _, key := range keysOf(sides) {
		rows := compareObject(key, sides, origins, masks)
		if len(rows) == 0 {
			m.Equal++
		}
		m.Rows = append(m.Rows, rows...)
	}
	return m
}

// Keep leaves only the rows of a verdict; those that are both count for either.
func (m Matrix) Keep(v Verdict) Matrix {
	m.Rows = slices.DeleteFunc(slices.Clone(m.Rows), func(r Row) bool { return r.Verdict != v && r.Verdict != Both })
	return m
}

// objectKey is what makes objects of several clusters the same one. An object in the
// destination's namespace is the same wherever that is.
type objectKey struct {
	group, kind, namespace, name string
}

func (k objectKey) compare(o objectKey) int {
	return cmp.Or(cmp.Compare(k.group, o.group), cmp.Compare(k.kind, o.kind), cmp.Compare(k.namespace, o.namespace), cmp.Compare(k.name, o.name))
}

// side is a column, ready to be compared.
type side struct {
	*Column

	objects map[objectKey]*rutter.Object
	fields  map[objectKey]map[string]string
	reports map[objectKey]*rutter.ResourceReport
}

func newSide(c *Column) *side {
	s := &side{Column: c, objects: map[objectKey]*rutter.Object{}, fields: map[objectKey]map[string]string{}, reports: map[objectKey]*rutter.ResourceReport{}}
	for i := range c.Objects {
		o := &c.Objects[i]
		k := s.key(o.Ref())
		s.objects[k], s.fields[k] = o, flatten(s.bare(o.Unstructured))
	}
	for i := range c.Report.Resources {
		if r := &c.Report.Resources[i]; !r.Hook {
			s.reports[s.key(r.Ref)] = r
		}
	}
	return s
}

func (s *side) key(ref rutter.Ref) objectKey {
	k := objectKey{ref.Group, ref.Kind, ref.Namespace, ref.Name}
	if ref.Namespace == s.Namespace {
		k.namespace = ""
	}
	return k
}

// bare is the object without what is different everywhere by its nature.
func (s *side) bare(u *unstructured.Unstructured) map[string]any {
	c := u.DeepCopy()
	labels, annotations := c.GetLabels(), c.GetAnnotations()
	delete(labels, rutter.LabelUnit)
	delete(annotations, rutter.AnnotationTracking)
	c.SetLabels(labels)
	c.SetAnnotations(annotations)
	unstructured.RemoveNestedField(c.Object, "metadata", "namespace")
	return c.Object
}

func keysOf(sides []*side) []objectKey {
	seen := map[objectKey]bool{}
	var keys []objectKey
	note := func(k objectKey) {
		if !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	for _, s := range sides {
		for k := range s.objects {
			note(k)
		}
		for k, r := range s.reports {
			if r.RequiresPruning {
				note(k)
			}
		}
	}
	slices.SortFunc(keys, objectKey.compare)
	return keys
}
