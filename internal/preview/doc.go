// Package preview compares two states of a fleet and says what would happen to
// it: which sets and Applications change, which objects are deleted, changed and
// added on which cluster, what the deletion budget would hold back, what the
// projects refuse, and what is risky. It shows a plan as text, Markdown, JSON
// and HTML.
//
// It is in the PURE ring: it gets both states as values and neither renders nor
// asks anybody. It speaks of units and objects and knows no dialect.
//
// The way through the package: side.go is what is compared, plan.go the result;
// compare.go pairs the units, objects.go their objects, diff.go finds the
// fields; risk*.go judge a change, group.go folds equal ones, digest.go names
// the plan; text.go, markdown.go and html.go print it.
package preview
