package argo

import (
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// terminating passes on that somebody wants the operation that runs to end
// (reference 2.1): its phase is the one field of the status that others write.
var terminating = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, isApp := e.ObjectOld.(*v1alpha1.Application)
		after, areApps := e.ObjectNew.(*v1alpha1.Application)
		return isApp && areApps && isTerminating(after) && !isTerminating(before)
	},
}

func isTerminating(app *v1alpha1.Application) bool {
	s := app.Status.OperationState
	return s != nil && s.Phase == string(rutter.OperationTerminating)
}

// terminate has the engine end the operation of which an Application says that it
// is to end.
func (a *applications) terminate(id rutter.UnitID, app *v1alpha1.Application) {
	if isTerminating(app) {
		a.opts.Engine.Terminate(id, "", app.Status.OperationState.StartedAt.Time)
	}
}

// requestOperation hands the operation field over once. One that takes the place of
// another which is not answered yet waits until that one is over; one that is taken
// away is ended. a.mu is held.
func (a *applications) requestOperation(id rutter.UnitID, app *v1alpha1.Application, x *asked) {
	switch {
	case app.Operation == nil:
		if x.operation != nil {
			a.opts.Engine.Terminate(id, x.id, time.Time{})
		}
		x.operation = nil
	case reflect.DeepEqual(x.operation, app.Operation) || version(app.ResourceVersion) <= x.answered:
	default:
		x.operation, x.id = app.Operation.DeepCopy(), string(app.UID)+"/"+app.ResourceVersion
		req := argo.SyncRequest(app)
		req.ID = x.id
		if err := argo.CheckOperation(app); err != nil {
			a.opts.Engine.Reject(id, req, err)
		} else {
			a.opts.Engine.Sync(id, req)
		}
	}
}
