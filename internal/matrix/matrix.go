package matrix

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

// Column is what one Application has on one cluster.
type Column struct {
	// Name heads the column: the cluster, or cluster/application where it has several.
	Name        string `json:"name"`
	Cluster     string `json:"cluster"`
	Application string `json:"application"`
	// AppNamespace is the Application's own.
	AppNamespace string `json:"applicationNamespace,omitempty"`
	Revision     string `json:"revision,omitempty"`
	// Problem is why it is not compared; the rest is then empty.
	Problem string `json:"problem,omitempty"`

	// Namespace is the destination's, and Release the name that charts put in front of
	// the names of their objects: neither is counted as a difference.
	Namespace string `json:"-"`
	Release   string `json:"-"`
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
	// Hash is that of Data: columns that read the same share it.
	Hash string
	Data []byte
}

// Setting is a value that an Application gives its tool, or one of a chart's values
// that is in force.
type Setting struct {
	Field, Value string
	// Where it is set; empty for the Application's field of that name.
	Where string
}

// what is set, wherever that is.
func (s Setting) what() [2]string { return [2]string{s.Field, s.Value} }

// Verdict is whether a difference was meant.
type Verdict string

// The verdicts. Both is a field that is declared differently and has drifted too;
// NotCompared an object of which a cluster could not say whether it has drifted.
const (
	Intended    Verdict = "intended"
	Accidental  Verdict = "accidental"
	Both        Verdict = "both"
	NotCompared Verdict = "not compared"
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
	// Unknown says that it could not be compared.
	Unknown bool `json:"unknown,omitempty"`
	// Because says where the declared value comes from, or who wrote the live one.
	Because []Because `json:"because,omitempty"`
}

// Because is why some columns have what they have.
type Because struct {
	Columns []string `json:"columns"`
	Text    string   `json:"text"`
}

// Of compares columns. Those with a problem are not compared.
func Of(columns []Column) Matrix {
	m := Matrix{Columns: columns, Rows: []Row{}}
	var sides []*side
	for i := range columns {
		if columns[i].Problem == "" {
			sides = append(sides, newSide(&columns[i], namesOf(&columns[i], columns)))
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

// Keep leaves only the rows of a verdict; those that are both count for either, and
// what could not be compared may be anything.
func (m Matrix) Keep(v Verdict) Matrix {
	m.Rows = slices.DeleteFunc(slices.Clone(m.Rows), func(r Row) bool { return r.Verdict != v && r.Verdict != Both && r.Verdict != NotCompared })
	return m
}

// objectKey is what makes objects of several clusters the same one.
type objectKey struct {
	group, kind, namespace, name string
}

func (k objectKey) compare(o objectKey) int {
	return cmp.Or(cmp.Compare(k.group, o.group), cmp.Compare(k.kind, o.kind), cmp.Compare(k.namespace, o.namespace), cmp.Compare(k.name, o.name))
}

// side is a column, ready to be compared.
type side struct {
	*Column

	names   names
	objects map[objectKey]*declared
	reports map[objectKey]*rutter.ResourceReport
}

// declared is an object as Git declares it.
type declared struct {
	origin rutter.Origin
	// object is without what is different everywhere by its nature, fields its values
	// by their paths.
	object map[string]any
	fields map[string]string
}

func newSide(c *Column, n names) *side {
	s := &side{Column: c, names: n, objects: map[objectKey]*declared{}, reports: map[objectKey]*rutter.ResourceReport{}}
	as := map[rutter.Ref]objectKey{}
	for _, o := range c.Objects {
		ref := o.Ref()
		k := n.key(ref)
		if s.objects[k] != nil {
			k = n.plain(ref) // two that would have one name keep their own
		}
		as[ref] = k
		bare := s.bare(o.Unstructured)
		s.objects[k] = &declared{origin: o.Origin, object: bare, fields: flatten(bare, k.secret())}
	}
	for i := range c.Report.Resources {
		r := &c.Report.Resources[i]
		if r.Hook {
			continue
		}
		k, known := as[r.Ref]
		if !known {
			if k = n.key(r.Ref); s.objects[k] != nil || s.reports[k] != nil {
				k = n.plain(r.Ref) // a former one beside that which is declared
			}
		}
		s.reports[k] = r
	}
	return s
}

// bare is the object without what is different everywhere by its nature.
func (s *side) bare(u *unstructured.Unstructured) map[string]any {
	c := compare.FoldSecret(u).DeepCopy()
	labels, annotations := c.GetLabels(), c.GetAnnotations()
	delete(labels, rutter.LabelUnit)
	for _, name := range []string{rutter.AnnotationTracking, rutter.AnnotationInstallation} {
		delete(annotations, name)
	}
	c.SetLabels(labels)
	c.SetAnnotations(annotations)
	unstructured.RemoveNestedField(c.Object, "metadata", "namespace")
	for k, v := range c.Object {
		if k != "data" && k != "stringData" && k != "binaryData" { // the keys of these are anybody's
			c.Object[k] = s.names.object(k, v, false)
		}
	}
	c.SetName(s.names.key(rutter.RefOf(u)).name)
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
