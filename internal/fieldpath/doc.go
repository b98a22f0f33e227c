// Package fieldpath reads the paths of fields as rutter.FieldDiff writes them, and
// writes them as JSON pointers, jq expressions and the narrowest rules of
// ignoreDifferences. PURE ring.
package fieldpath
