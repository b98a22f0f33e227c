package decrypt

import (
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"
	"github.com/getsops/sops/v3/keyservice"
	"github.com/getsops/sops/v3/kms"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// parseAWS reads sops.aws-kms: YAML with an access key.
func parseAWS(value []byte) (aws.CredentialsProvider, error) {
	var c struct {
		ID      string `json:"aws_access_key_id"`
		Secret  string `json:"aws_secret_access_key"`
		Session string `json:"aws_session_token"`
	}
	if yaml.Unmarshal(value, &c) != nil || c.ID == "" || c.Secret == "" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "is no AWS credential: write YAML with aws_access_key_id, aws_secret_access_key and, for temporary ones, aws_session_token")
	}
	return credentials.NewStaticCredentialsProvider(c.ID, c.Secret, c.Session), nil
}

// openAWS asks AWS KMS with each credential. A profile that the file names is
// not used: profiles are files of the machine, and may name programs.
func (s *service) openAWS(k *keyservice.KmsKey, sealed []byte) ([]byte, error) {
	err := errNoKey
	for _, set := range s.keys {
		if set.aws == nil {
			continue
		}
		encryption := make(map[string]*string, len(k.GetContext()))
		for name, v := range k.GetContext() {
			encryption[name] = &v
		}
		key := &kms.MasterKey{Arn: k.GetArn(), Role: k.GetRole(), EncryptionContext: encryption, EncryptedKey: string(sealed)}
		kms.NewCredentialsProvider(set.aws).ApplyToMasterKey(key)
		if s.http != nil {
			kms.NewHTTPClient(s.http).ApplyToMasterKey(key)
		}
		plain, failed := key.DecryptContext(s.ctx)
		if failed == nil {
			return plain, nil
		}
		err = awsError(set, failed)
	}
	return nil, err
}

// awsError keeps the code of AWS' answer and leaves its text.
func awsError(set *keySet, err error) error {
	status, answered := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err)
	api, named := errors.AsType[smithy.APIError](err)
	switch {
	case named && api.ErrorCode() == "InvalidCiphertextException":
		return errDamaged
	case named && answered && status.HTTPStatusCode() < http.StatusInternalServerError && status.HTTPStatusCode() != http.StatusTooManyRequests:
		return rutter.Errorf(rutter.CodeForbidden, "AWS refused the credentials of Secret %s with %s", set.name, api.ErrorCode())
	case named:
		return rutter.Errorf(rutter.CodeUnavailable, "AWS answered %s", api.ErrorCode())
	}
	return rutter.Errorf(rutter.CodeUnavailable, "AWS did not answer")
}
