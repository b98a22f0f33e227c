package decrypt

import (
	"encoding/json"

	"github.com/getsops/sops/v3/gcpkms"
	"github.com/getsops/sops/v3/keyservice"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rutterhq/rutter"
)

// parseGCP reads sops.gcp-kms: the JSON of a service account. Other kinds of
// credential files make the client read files, addresses or programs that they name.
func parseGCP(value []byte) ([]byte, error) {
	var c struct {
		Type  string `json:"type"`
		Email string `json:"client_email"`
		Key   string `json:"private_key"`
	}
	if json.Unmarshal(value, &c) != nil || c.Type != "service_account" || c.Email == "" || c.Key == "" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "is no key of a Google service account: put its JSON file here (type service_account)")
	}
	return value, nil
}

// openGCP asks Google's KMS with each credential.
func (s *service) openGCP(k *keyservice.GcpKmsKey, sealed []byte) ([]byte, error) {
	err := errNoKey
	for _, set := range s.keys {
		if set.gcp == nil {
			continue
		}
		key := &gcpkms.MasterKey{ResourceID: k.GetResourceId(), EncryptedKey: string(sealed)}
		gcpkms.CredentialJSON(set.gcp).ApplyToMasterKey(key)
		plain, failed := key.DecryptContext(s.ctx)
		if failed == nil {
			return plain, nil
		}
		err = gcpError(set, failed)
	}
	return nil, err
}

// gcpError keeps the code of Google's answer and leaves its text.
func gcpError(set *keySet, err error) error {
	switch code := status.Code(unwrapAll(err)); code { //nolint:exhaustive // the others are no answer
	case codes.InvalidArgument:
		return errDamaged
	case codes.PermissionDenied, codes.Unauthenticated, codes.NotFound, codes.FailedPrecondition:
		return rutter.Errorf(rutter.CodeForbidden, "Google refused the credentials of Secret %s with %s", set.name, code)
	}
	return rutter.Errorf(rutter.CodeUnavailable, "Google's KMS did not answer")
}

// unwrapAll returns the innermost error that carries a gRPC status, or err.
func unwrapAll(err error) error {
	for e := err; e != nil; {
		if _, ok := e.(interface{ GRPCStatus() *status.Status }); ok {
			return e
		}
		u, ok := e.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		e = u.Unwrap()
	}
	return err
}
