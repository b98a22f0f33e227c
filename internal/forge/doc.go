// Package forge asks hosting services which repositories and pull requests
// they hold (ADAPTER ring): GitHub, GitLab, Gitea, Bitbucket Server and Cloud,
// Azure DevOps and AWS CodeCommit. It implements rutter.Forges.
//
// From an answer applications are made, and what is missing in it may be taken
// away. So an answer is complete or an error. Nothing is read as "there is
// none" that does not say so: a page that is cut off, is no JSON, lacks a
// promised field, comes twice, or leads to another host ends the walk; a walk
// over several pages is checked for having stood still meanwhile; a 404 counts
// only in the form in which the API writes it.
//
// A login is bound to the API's scheme and host. It is looked up when it is
// needed, sent to that host and along no redirect to another one, and it is in
// no error. Quotas are read from the answers: a question that the service
// would refuse is not put, but waits or fails with the time at which to come
// again. What a service confirms to be unchanged costs it and us next to nothing.
package forge
