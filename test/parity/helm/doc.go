// Package helmparity holds the parity suite of charts: what Rutter renders must
// be what the helm program prints, object by object and in its order.
//
// Ring: tests. The charts are those of testdata, and those that Helm's own
// module brings along. The helm program is built from the module that Rutter
// links.
package helmparity
