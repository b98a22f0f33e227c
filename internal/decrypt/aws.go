package decrypt

import (
	"encoding/base64"
	"errors"
	"net/http"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/getsops/sops/v3/keyservice"
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

// arn is a KMS key's; the region becomes part of a host name.
var arn = regexp.MustCompile(`^arn:aws[a-z-]*:kms:([a-z0-9-]+):[0-9]+:(key|alias)/.+$`)

// openAWS asks AWS KMS with each credential. The library's client is not used:
// it would read the machine's profiles and environment. A profile that the
// file names is ignored, for the same reason.
func (s *service) openAWS(k *keyservice.KmsKey, sealed []byte) ([]byte, error) {
	err := errNoKey
	for _, set := range s.keys {
		if set.aws == nil {
			continue
		}
		m := arn.FindStringSubmatch(k.GetArn())
		blob, bad := base64.StdEncoding.DecodeString(string(sealed))
		if m == nil || bad != nil {
			return nil, errDamaged
		}
		plain, failed := s.askAWS(set.aws, m[1], k, blob)
		if failed == nil {
			return plain, nil
		}
		err = awsError(set, failed)
	}
	return nil, err
}

// askAWS opens a data key, in the role that the file names where it does.
func (s *service) askAWS(credential aws.CredentialsProvider, region string, k *keyservice.KmsKey, blob []byte) ([]byte, error) {
	var client aws.HTTPClient // nil is the SDK's own
	if s.http != nil {
		client = s.http
	}
	if k.GetRole() != "" {
		out, err := sts.New(sts.Options{Region: region, Credentials: credential, HTTPClient: client}).AssumeRole(s.ctx,
			&sts.AssumeRoleInput{RoleArn: aws.String(k.GetRole()), RoleSessionName: aws.String("rutter")})
		if err != nil {
			return nil, err //nolint:wrapcheck // awsError translates it
		}
		credential = credentials.NewStaticCredentialsProvider(aws.ToString(out.Credentials.AccessKeyId),
			aws.ToString(out.Credentials.SecretAccessKey), aws.ToString(out.Credentials.SessionToken))
	}
	out, err := kms.New(kms.Options{Region: region, Credentials: credential, HTTPClient: client}).Decrypt(s.ctx,
		&kms.DecryptInput{KeyId: aws.String(k.GetArn()), CiphertextBlob: blob, EncryptionContext: k.GetContext()})
	if err != nil {
		return nil, err //nolint:wrapcheck // awsError translates it
	}
	return out.Plaintext, nil
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
