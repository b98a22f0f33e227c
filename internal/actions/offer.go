package actions

import "strings"

// Which says which objects of an Application are meant; what is empty means any.
type Which struct {
	Group, Kind, Namespace, Name string
}

// Means reports whether an object is meant.
func (w Which) Means(group, kind, namespace, name string) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return is(w.Group, group) && is(w.Kind, kind) && is(w.Namespace, namespace) && is(w.Name, name)
}

// String is what was asked for, as the command line has it.
func (w Which) String() string {
	var parts []string
	for _, f := range []struct{ flag, value string }{{"group", w.Group}, {"kind", w.Kind}, {"namespace", w.Namespace}, {"resource-name", w.Name}} {
		if f.value != "" {
			parts = append(parts, "--"+f.flag+" "+f.value)
		}
	}
	if len(parts) == 0 {
		return "no filter"
	}
	return strings.Join(parts, " ")
}

// Offers are what can be done to the objects of an Application.
type Offers struct {
	Objects []Offer `json:"objects"`
	// Problems are what is wrong with the operator's own actions.
	Problems []string `json:"problems,omitempty"`
}

// Offer is what can be done to an object.
type Offer struct {
	Group     string   `json:"group"`
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Actions   []Action `json:"actions,omitempty"`
	// Problem is why its actions are not known.
	Problem string `json:"problem,omitempty"`
}

// Done is one thing that was done.
type Done struct {
	Action string `json:"action"`
	// What is changed, created or unchanged.
	What      string `json:"what"`
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}
