// Package signature verifies the signatures of Git commits: OpenPGP ones with
// the public keys that an operator has registered, and SSH ones by themselves,
// since they carry their key and a project lists its fingerprint. It says by
// which key an object is signed and whether that holds; whose signatures count
// is package policy's to say. ADAPTERS ring.
//
// The rooms: commit (what of a commit is signed), openpgp and ssh (the two
// forms), keyring (the registered keys, and the question).
package signature
