package forge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/rutterhq/rutter"
)

// AWSKey signs requests to AWS. It has no String method and is never logged.
type AWSKey struct {
	ID, Secret, Session string
	// Until is when it ends; zero for one that does not end by itself.
	Until time.Time
}

// MachineIdentity finds the identity that AWS has given to this process: by
// variables of the environment, a token file of the cluster, or the machine's role.
func MachineIdentity() func(ctx context.Context) (AWSKey, error) {
	var mu sync.Mutex
	var provider aws.CredentialsProvider
	return func(ctx context.Context) (AWSKey, error) {
		mu.Lock()
		defer mu.Unlock()
		if provider == nil {
			cfg, err := config.LoadDefaultConfig(ctx)
			if err != nil || cfg.Credentials == nil {
				return AWSKey{}, rutter.Errorf(rutter.CodeForbidden, "this process has no identity at AWS: bind its service account to a role")
			}
			provider = cfg.Credentials
		}
		key, err := provider.Retrieve(ctx)
		if err != nil {
			return AWSKey{}, rutter.Errorf(rutter.CodeForbidden, "this process has no identity at AWS: bind its service account to a role")
		}
		return AWSKey{ID: key.AccessKeyID, Secret: key.SecretAccessKey, Session: key.SessionToken, Until: key.Expires}, nil
	}
}

// role is what AWS gave for a role; its lock makes all who need it share one request.
type role struct {
	mu  sync.Mutex
	key AWSKey
}

// roleARN is arn:aws:iam::account:role/path/name.
var roleARN = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$`)

// awsLogin is this process' identity, or the role that the query names, which
// that identity has to be allowed to take on.
func (s *session) awsLogin(ctx context.Context) (login, error) {
	if s.opts.AWS == nil {
		return login{}, rutter.Errorf(rutter.CodeInvalid, "this process has no identity at AWS: the operator has to give it one")
	}
	key, err := s.opts.AWS(ctx)
	if err != nil {
		return login{}, rutter.Errorf(rutter.CodeOf(err), "%w", err)
	}
	l := login{name: "this process' identity at AWS", digest: digestOf("aws", key.ID, s.q.Region)}
	if s.q.Role != "" {
		if !roleARN.MatchString(s.q.Role) {
			return login{}, rutter.Errorf(rutter.CodeInvalid, "role %s is none: write it as arn:aws:iam::ACCOUNT:role/NAME", quote(s.q.Role))
		}
		l.name, l.digest = s.q.Role, digestOf("aws", key.ID, s.q.Region, s.q.Role)
		held := s.roles.Get(l.digest, func() *role { return &role{} })
		if key, err = s.assume(ctx, held, key); err != nil {
			return login{}, err
		}
	}
	l.aws, l.secrets = key, []string{key.Secret, key.Session}
	return l, nil
}

// assume takes a role on, or goes on in it while it lasts.
func (s *session) assume(ctx context.Context, held *role, base AWSKey) (AWSKey, error) {
	held.mu.Lock()
	defer held.mu.Unlock()
	if held.key.ID != "" && held.key.Until.Sub(s.opts.Now()) > appMargin {
		return held.key, nil
	}
	opts := sts.Options{Region: s.q.Region, Credentials: credentials.NewStaticCredentialsProvider(base.ID, base.Secret, base.Session), HTTPClient: s.http}
	if s.opts.STS != "" {
		opts.BaseEndpoint = aws.String(s.opts.STS)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	s.requests.Add(1)
	out, err := sts.New(opts).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: aws.String(s.q.Role), RoleSessionName: aws.String("rutter")})
	if err != nil {
		return AWSKey{}, stsError(s.q.Role, err)
	}
	if out.Credentials == nil || aws.ToString(out.Credentials.AccessKeyId) == "" || aws.ToString(out.Credentials.SecretAccessKey) == "" {
		return AWSKey{}, rutter.Errorf(rutter.CodeUnavailable, "role %s: the answer has no key in it", quote(s.q.Role))
	}
	held.key = AWSKey{
		ID: aws.ToString(out.Credentials.AccessKeyId), Secret: aws.ToString(out.Credentials.SecretAccessKey),
		Session: aws.ToString(out.Credentials.SessionToken), Until: aws.ToTime(out.Credentials.Expiration),
	}
	return held.key, nil
}

// stsError keeps the code of the answer and leaves its text.
func stsError(role string, err error) error {
	if coded, ok := errors.AsType[*rutter.Error](err); ok {
		return coded
	}
	api, named := errors.AsType[smithy.APIError](err)
	switch {
	case named && api.ErrorFault() == smithy.FaultServer, named && slices.Contains(awsBusy, api.ErrorCode()):
		return rutter.Errorf(rutter.CodeUnavailable, "role %s: AWS answered %s", quote(role), quote(api.ErrorCode()))
	case named:
		return rutter.Errorf(rutter.CodeForbidden, "role %s is not given to this process' identity (%s): allow sts:AssumeRole in the role's trust policy", quote(role), quote(api.ErrorCode()))
	}
	return rutter.Errorf(rutter.CodeUnavailable, "role %s: AWS did not answer", quote(role))
}

// sign signs a finished request for a service of AWS.
func (s *session) sign(req *http.Request, body []byte, service string) error {
	sum := sha256.Sum256(body)
	key := aws.Credentials{AccessKeyID: s.login.aws.ID, SecretAccessKey: s.login.aws.Secret, SessionToken: s.login.aws.Session}
	if err := v4.NewSigner().SignHTTP(req.Context(), key, req, hex.EncodeToString(sum[:]), service, s.q.Region, s.opts.Now()); err != nil {
		return rutter.Errorf(rutter.CodeInternal, "signing the request failed")
	}
	return nil
}

// The names by which AWS says what is wrong; all come with status 400.
var (
	awsBusy = []string{"ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded", "LimitExceededException", "SlowDown", "RequestThrottled"}
	awsDeny = []string{
		"AccessDeniedException", "AccessDenied", "UnrecognizedClientException", "ExpiredTokenException", "InvalidSignatureException",
		"InvalidClientTokenId", "MissingAuthenticationTokenException", "IncompleteSignatureException", "OptInRequired", "SignatureDoesNotMatch",
	}
	awsNone = []string{"FolderDoesNotExistException", "PathDoesNotExistException"}
)

// awsFault is the name in a refusal; "" when there is none.
func awsFault(body []byte) string {
	if !bytes.Contains(body, []byte(`"__type"`)) {
		return ""
	}
	var refusal struct {
		Type string `json:"__type"`
	}
	if json.Unmarshal(body, &refusal) != nil {
		return ""
	}
	return refusal.Type[strings.LastIndexByte(refusal.Type, '#')+1:]
}
