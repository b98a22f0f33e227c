package preview

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// Side is one state of the fleet.
type Side struct {
	// Name is how the user named it, such as origin/main; Revision is its commit.
	Name     string
	Revision string
	Projects []Project
	Sets     []Set
	Units    []Unit
	Problems []Problem
}

// Project is a declaration of what units may do.
type Project struct {
	Name string
	File string
	// Declaration is compared field by field; it is plain JSON.
	Declaration any
}

// Set is a declaration that generates units.
type Set struct {
	Name string
	File string
	// Declaration is compared field by field; it is plain JSON.
	Declaration any
	// Size is how many units it has.
	Size int
	// Held are the removals that the head's budget does not let through.
	Held *Held
}

// Unit is one unit and what it renders to.
type Unit struct {
	ID rutter.UnitID
	// Name is the unit's for people; it is unique on a side.
	Name string
	// Set or Parent is what declares it, else File does.
	Set    string
	Parent string
	File   string
	Line   int

	// Cluster is where its objects go: Server is the key, Cluster its name.
	Cluster   string
	Server    string
	Namespace string

	// Declaration is compared field by field; it is plain JSON.
	Declaration any
	// Key is equal on both sides when neither the declaration nor the objects
	// nor the rules about them can differ; Objects may then be left out.
	Key string
	// Inputs names what was read to render it. It stands for what a digest of
	// the plan must not be made of: the content of Secrets.
	Inputs  string
	Objects []Object
	// Failed says that it could not be rendered: its objects are not known, and
	// nothing is concluded from their absence.
	Failed bool
	// Vanished says that it failed because its path or revision is not there.
	Vanished bool

	// Prunes says that what it no longer declares is deleted without being asked.
	Prunes bool
	// Manual says that nothing happens before somebody syncs it.
	Manual bool
	// Stays, when set, is why the unit remains although it is not declared any more.
	Stays string
	// Orphans, when set, is why its objects remain when it goes.
	Orphans string
	// Refused, when set, is the rule that forbids the unit: then nothing of it is
	// touched.
	Refused string
}

// blind reports whether nothing can be said of the unit's objects.
func (u *Unit) blind() bool { return u.Failed || u.Refused != "" }

// Object is one object of a unit, as it is sent.
type Object struct {
	*unstructured.Unstructured

	Origin rutter.Origin
	// Hook objects are made anew at each sync and are not a state.
	Hook bool
	// Stays says that the object is never pruned.
	Stays bool
	// Refused, when set, is the rule that forbids it: it is not sent.
	Refused string
}

// Ref is the identity of the object.
func (o Object) Ref() rutter.Ref { return rutter.RefOf(o.Unstructured) }
