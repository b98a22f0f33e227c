// Package unpack turns archives into read-only trees (ADAPTER ring; the
// adapters for charts, artifacts and files on the web share it, and it knows
// none of them).
//
// An archive is a stranger's program for writing files. Here it writes none:
// the contents of its entries are put behind each other into one file with a
// name of ours, a pack, and the names of the entries become a table in that
// file. What reads the tree walks the table. So there is no path to traverse,
// no link of the file system to follow, nothing to execute, and one file to
// open, verify and remove for each tree.
//
// Packs live in a bounded store on disk that survives restarts. Each is checked
// as a whole when it is opened and file by file when it is read; a damaged one
// is dropped, and what it held is fetched again.
package unpack
