/**
 * Lint rules of the console's and the client's JavaScript: ESLint's recommended ones, and those that found faults or would.
 * How code is laid out is Prettier's affair, what values are is TypeScript's (tsconfig.json).
 *
 * Paths are relative to the repository, where `make check` starts ESLint.
 */

import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      "consistent-return": "error",
      curly: ["error", "multi-line"],
      "default-case-last": "error",
      eqeqeq: "error",
      "no-constructor-return": "error",
      "no-else-return": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-lonely-if": "error",
      "no-new-func": "error",
      "no-script-url": "error",
      "no-self-compare": "error",
      "no-shadow": "error",
      "no-template-curly-in-string": "error",
      "no-throw-literal": "error",
      "no-unmodified-loop-condition": "error",
      "no-unreachable-loop": "error",
      "no-unused-vars": ["error", { varsIgnorePattern: "^_", caughtErrors: "all" }],
      "no-useless-concat": "error",
      "no-useless-rename": "error",
      "no-useless-return": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-object-spread": "error",
      "prefer-promise-reject-errors": "error",
      "prefer-rest-params": "error",
      "prefer-spread": "error",
      "prefer-template": "error",
      radix: "error",
    },
  },
  { ignores: ["client/**"], languageOptions: { globals: globals.browser } },
  { files: ["client/**"], languageOptions: { globals: globals["shared-node-browser"] } },
  { files: ["**/test/**", "**/*.mjs"], languageOptions: { globals: globals.node } },
];
