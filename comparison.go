package rutter

// CompareSettings are what an operator sets for all comparisons (reference 3.2,
// 3.4, 3.7).
type CompareSettings struct {
	// Ignore are rules for every unit, after its own.
	Ignore []IgnoreRule
	// IgnoreUpdates are fields whose changes are nobody's business. A change of
	// what is not declared wakes nobody here anyway.
	IgnoreUpdates []IgnoreRule
	// Status says whose status is not compared.
	Status StatusRule
	// Known are fields of custom resources that hold a built-in type.
	Known []KnownField
	// Exclude are kinds that are never touched; with Include, for a cluster that
	// it names, no others are touched either.
	Exclude, Include []ResourceFilter
}

// StatusRule says whose status is not compared although Git declares one. That
// of the built-in kinds can't be applied and is never compared.
type StatusRule string

// The status rules; the empty one is StatusIgnored.
const (
	StatusIgnored      StatusRule = "all"
	StatusIgnoredOfCRD StatusRule = "crd"
	StatusCompared     StatusRule = "none"
)

// KnownField is a field of a kind that holds a built-in type, so that its values
// are compared as that type's are: 1000m is 1.
type KnownField struct {
	// Group and Kind are globs.
	Group, Kind string
	// Field is a path of names; lists on the way are passed through.
	Field string
	// Type is such as core/v1/PodSpec, core/Quantity or meta/v1/Duration.
	Type string
}

// ResourceFilter names kinds at clusters, by globs; an empty list means all.
type ResourceFilter struct {
	Groups, Kinds, Clusters []string
}
