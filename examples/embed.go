// Package examples carries the example fleet, so that the demo needs nothing
// but the binary.
package examples

import "embed"

// Fleet is the example repository, under fleet/.
//
//go:embed all:fleet
var Fleet embed.FS
