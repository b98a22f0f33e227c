// Package policy is the one evaluator of AppProjects: whether an Application may
// use a source, go to a destination and manage a kind there, with whose rights,
// and by which rule. The same Project answers when an Application is admitted,
// for each object when it is applied or removed, and for a plan. PURE ring.
//
// The semantics are those of reference 06-appproject with one principle put
// above its quirks: something must allow it, and nothing may deny it. A rule
// that denies (an entry with "!") never allows anything, so that adding one
// never widens a project. A rule that denies and cannot be read denies
// everything; one that allows and cannot be read allows nothing.
//
// The rooms: project (what is in force: own rules, inherited ones, what is
// registered for the project alone), decide (the question and its answer),
// source, destination, resource, account (the rules), syncwindow with schedule
// (when syncs may run), orphan, signature and role (what else a project says),
// validate (what is wrong with a project) and warning (what is allowed by it and
// hardly meant).
package policy
