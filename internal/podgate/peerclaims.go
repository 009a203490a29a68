package podgate

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/core/admission"
)

// maxToken is how long a token may be. Those of service accounts have about a thousand characters.
const maxToken = 8 << 10

// claims are what a token says of itself. Anybody can write such a token: by its claims it can be
// refused, and not be believed.
type claims struct {
	Subject  string   `json:"sub"`
	Audience audience `json:"aud"`
	// Expires is in seconds, as a JWT has it.
	Expires float64 `json:"exp"`
}

// audience is one name or several: a JWT may have either.
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// claimsOf reads the claims of a token, and refuses one that by its own words is not that of an agent.
func claimsOf(token string) (*claims, error) {
	parts := strings.Split(token[:min(len(token), maxToken+1)], ".")
	if len(token) > maxToken || len(parts) != 3 {
		return nil, errors.New("the token is not that of a service account")
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, fmt.Errorf("reading the token: %w", err)
	}
	said := &claims{}
	if err := json.Unmarshal(data, said); err != nil {
		return nil, fmt.Errorf("reading the token: %w", err)
	}
	switch {
	case said.Subject != admission.PodgateUser:
		return nil, fmt.Errorf("the token is of %.253q, must be of %s", said.Subject, admission.PodgateUser)
	case !slices.Contains(said.Audience, peerAudience):
		return nil, fmt.Errorf("the token is not for %s", peerAudience)
	}
	return said, nil
}

// expiry is when the token is no longer good. One that does not say so is not good for long, as far as
// anybody here knows.
func (c *claims) expiry() time.Time { return time.Unix(int64(c.Expires), 0) }
