package preview

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// canonicalObject is an object's change as the digest sees it: what is done to
// what, and the content before and after.
type canonicalObject struct {
	Verb                                  Verb
	Cluster, Application, From            string
	Group, Version, Kind, Namespace, Name string
	Before, After                         string
}

// digest names the plan: the sets, Applications and objects that change, how,
// and what would be held back. Neither the commits nor the wording are part of
// it, so that another commit that does the same to the fleet has the same digest.
func digest(p Plan) string {
	objects := make([]canonicalObject, 0, len(p.Objects))
	for _, o := range p.Objects {
		objects = append(objects, canonicalObject{o.Verb, o.Cluster, o.Application, o.From, o.Group, o.Version, o.Kind, o.Namespace, o.Name, o.before, o.after})
	}
	type declared struct {
		Verb                                    Verb
		Name, From, Set, FromSet, Cluster, Hash string
	}
	units := make([]declared, 0, len(p.Applications)+len(p.Sets))
	for _, u := range p.Applications {
		units = append(units, declared{u.Verb, u.Name, u.From, u.Set, u.FromSet, u.Cluster, u.declared})
	}
	for _, s := range p.Sets {
		units = append(units, declared{Verb: s.Verb, Set: s.Name, Hash: s.declared})
	}
	for _, s := range p.Projects {
		units = append(units, declared{Verb: s.Verb, From: "project", Name: s.Name, Hash: s.declared})
	}
	held := slices.Clone(p.Held)
	slices.SortFunc(held, func(a, b Held) int { return cmp.Compare(a.Set, b.Set) })
	for i := range held { // the risks follow from the rest
		held[i].Reason, held[i].Namespace, held[i].Digest, held[i].Risks = "", "", "", nil
	}
	text, err := json.Marshal([]any{Schema, units, objects, held})
	if err != nil {
		return "" // strings and numbers always encode
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// hashOf is the content of a declaration.
func hashOf(v any) string {
	sum := sha256.Sum256(jsonOf(v))
	return hex.EncodeToString(sum[:16])
}
