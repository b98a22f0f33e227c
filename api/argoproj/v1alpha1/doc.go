// Package v1alpha1 holds the objects of the Argo CD dialect, group
// argoproj.io/v1alpha1: Application, ApplicationSet and AppProject. The types
// are written from the observable behaviour of Argo CD; they hold data and do
// nothing.
//
// +kubebuilder:object:generate=true
// +groupName=argoproj.io
package v1alpha1
