// Package decrypt opens what SOPS has sealed: whole files of a repository
// before a tool reads them, and single objects after a build. Keys are values
// that somebody hands in (the data of Secrets); nothing else is asked for one -
// no environment variable, no home directory, no agent, no child process.
//
// The format, the ciphers and the cloud clients are those of the SOPS library.
// What the library would fetch by itself, the private keys, is replaced by a
// key service of our own (service.go) that holds age and PGP keys in memory and
// gives the cloud clients the credentials of the same Secret.
//
// Errors name the file or object and whom it was sealed for, and never pass on
// the library's text, which can hold plaintext.
//
// Ring: adapter. It implements rutter.Decrypter.
package decrypt
