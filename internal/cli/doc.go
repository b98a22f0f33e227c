// Package cli is the command line: one file a command, each a thin call into
// the packages below. Driver ring: it reaches adapters only through Deps, which
// cmd/rutter fills in.
//
// Output is a table on request of nobody, or json, yaml and wide with -o.
// Colours are used on a terminal only. Exit codes: 0 done, 1 differences or a
// failed wait, 2 an error.
package cli
