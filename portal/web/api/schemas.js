/** What a JSON Schema says, in words and rows; pure. A schema may refer to parts of the document it stands in. */

const DEPTH_MAX = 8; // of references to references; deeper ones are named only

/** The part of `document` that a reference leads to; anything else is returned as it is. */
export function resolved(value, document) {
  for (let depth = 0; depth < DEPTH_MAX && typeof value?.$ref === "string"; depth++) {
    const parts = value.$ref.replace(/^#\//, "").split("/");
    value = parts.reduce((at, part) => at?.[part.replaceAll("~1", "/").replaceAll("~0", "~")], document);
  }
  return value ?? {};
}

/** The name of the component that a reference leads to; empty for anything else. */
export function componentName(schema) {
  return typeof schema?.$ref === "string" ? schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1) : "";
}

/** The type of a schema in words: `text`, `list of Lease`, `integer or null`. @returns {string} */
export function typeName(schema, document) {
  const name = componentName(schema);
  if (name && Object.keys(members(schema, document)).length) return name;
  const { type, items, enum: values, const: only, anyOf, oneOf, allOf } = resolved(schema, document);
  if (only !== undefined) return JSON.stringify(only);
  const options = anyOf ?? oneOf;
  if (options) return unique(options.map((option) => typeName(option, document))).join(" or ");
  const types = [type ?? []].flat();
  if (!types.length && values) return "one of";
  if (!types.length && allOf) return unique(allOf.map((part) => typeName(part, document))).join(" and ");
  const words = types.map((one) =>
    one === "array" && items && Object.keys(items).length
      ? `list of ${typeName(items, document)}`
      : (WORDS[one] ?? one),
  );
  return words.join(" or ") || "any JSON";
}

const WORDS = { string: "text", array: "list" };

function unique(values) {
  return [...new Set(values)];
}

/** The members of an object, its own and those of the schemas that it consists of; {} for other types. */
export function members(schema, document, depth = 0) {
  const { properties = {}, allOf = [], required = [] } = resolved(schema, document);
  const parts = depth < DEPTH_MAX ? allOf.map((part) => members(part, document, depth + 1)) : [];
  const own = Object.entries(properties).map(([name, value]) => [
    name,
    { schema: value, required: required.includes(name) },
  ]);
  return Object.assign({}, ...parts, Object.fromEntries(own));
}

/** The schema whose members are worth showing: of a list that of its items, of a choice the first with members; else null. */
export function inner(schema, document) {
  if (Object.keys(members(schema, document)).length) return schema;
  const { items, unevaluatedItems, anyOf, oneOf } = resolved(schema, document);
  const options = [items, unevaluatedItems, ...(anyOf ?? []), ...(oneOf ?? [])];
  return options.find((option) => option && Object.keys(members(option, document)).length) ?? null;
}

/** What a schema restricts, as short phrases. @returns {string[]} */
export function restrictions(schema, document) {
  const {
    enum: values,
    default: standard,
    minimum,
    maximum,
    minLength,
    maxLength,
    minItems,
    maxItems,
    format,
    pattern,
  } = resolved(schema, document);
  const bound = (least, most, unit) => {
    if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}`;
    if (least !== undefined) return `at least ${least}${unit}`;
    return most === undefined ? "" : `at most ${most}${unit}`;
  };
  return [
    values ? values.map((value) => JSON.stringify(value)).join(", ") : "",
    bound(minimum, maximum, ""),
    bound(minLength, maxLength, " characters"),
    bound(minItems, maxItems, " items"),
    format ?? "",
    pattern && pattern.length <= 60 ? pattern : "",
    standard === undefined ? "" : `default ${JSON.stringify(standard)}`,
  ].filter(Boolean);
}
