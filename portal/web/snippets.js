/** Programs that publish one event, to be copied: complete, with a token that works. */

/**
 * @param {{origin: string, rp: string, token: string}} given the domain's address, the RP's id, a token for it
 * @returns {Record<"curl" | "python" | "javascript", string>}
 */
export function snippets({ origin, rp, token }) {
  const url = `${origin}/api/v1/rps/${rp}/events`;
  return {
    curl: `curl ${url} \\
  -H 'Authorization: Bearer ${token}' \\
  -H 'Content-Type: application/json' \\
  -d '{"hello": "from curl"}'`,
    python: `import json
import urllib.request

request = urllib.request.Request(
    "${url}",
    data=json.dumps({"hello": "from Python"}).encode(),
    headers={
        "Authorization": "Bearer ${token}",
        "Content-Type": "application/json",
    },
)
with urllib.request.urlopen(request) as answer:
    print(answer.read().decode())`,
    javascript: `const answer = await fetch("${url}", {
  method: "POST",
  headers: {
    Authorization: "Bearer ${token}",
    "Content-Type": "application/json",
  },
  body: JSON.stringify({ hello: "from JavaScript" }),
});
console.log(answer.status, await answer.text());`,
  };
}
