// Publish an event and follow a rendezvous point by plain HTTP, with Go's standard library only:
//
//	go run main.go RENDEZVOUS-POINT [CURSOR-FILE]
//
// The cursor of the last event is kept in the file, so that the next start continues behind it.
// Environment: HERALD_URL (default http://127.0.0.1:8000), HERALD_TOKEN.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

var base, token = env("HERALD_URL", "http://127.0.0.1:8000"), os.Getenv("HERALD_TOKEN")

func env(name, standard string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return standard
}

// address returns the address of a rendezvous point's part; a name is one segment, with its slashes.
func address(rp, part string) string {
	return base + "/api/v1/rps/" + url.PathEscape(rp) + "/" + part
}

func send(request *http.Request) (*http.Response, error) {
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err == nil && answer.StatusCode >= 300 {
		problem, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		return nil, fmt.Errorf("refused: %s", problem) // a problem document says what is wrong, then what to do
	}
	return answer, err
}

func publish(rp, id string, data any) error {
	body, err := json.Marshal(map[string]any{
		"specversion": "1.0", "id": id, "source": "/examples/go", "type": "org.example.greeting", "data": data,
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequest("POST", address(rp, "events"), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/cloudevents+json")
	answer, err := send(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// follow reads the stream until it ends, and returns the cursor to continue from.
func follow(rp, cursor string, handle func(cursor string, event []byte)) (string, error) {
	request, err := http.NewRequest("GET", address(rp, "stream")+"?after=earliest", nil)
	if err != nil {
		return cursor, err
	}
	if cursor != "" {
		request.Header.Set("Last-Event-ID", cursor) // takes precedence over after
	}
	answer, err := send(request)
	if err != nil {
		return cursor, err
	}
	defer answer.Body.Close()
	kind, id, data := "", "", ""
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			kind = value
		case "id":
			id = value
		case "data":
			data += value
		case "": // an empty line ends an event; a comment keeps the connection open
			if lines.Text() == "" && data != "" {
				if kind == "" {
					handle(id, []byte(data))
				} else {
					log.Printf("%s: %s", kind, data) // gap: events that are not in the history any more
				}
				if id != "" {
					cursor = id
				}
				kind, data = "", ""
			}
		}
	}
	return cursor, lines.Err()
}

func main() {
	rp, file := os.Args[1], ""
	if len(os.Args) > 2 {
		file = os.Args[2]
	}
	if err := publish(rp, fmt.Sprint(time.Now().UnixNano()), map[string]string{"greeting": "from Go"}); err != nil {
		log.Fatal(err)
	}
	kept, _ := os.ReadFile(file)
	cursor := string(kept)
	for {
		var err error
		cursor, err = follow(rp, cursor, func(cursor string, event []byte) {
			fmt.Printf("%s %s\n", cursor, event)
			if file != "" {
				if err := os.WriteFile(file, []byte(cursor), 0o600); err != nil {
					log.Fatal(err)
				}
			}
		})
		log.Printf("the stream ended (%v); connecting again", err)
		time.Sleep(time.Second)
	}
}
