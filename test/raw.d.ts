/** A file's text, as vite gives it. Its own reading of JSON breaks on U+2028. */
declare module "*.json?raw" {
  const text: string;
  export default text;
}

declare module "*.toml?raw" {
  const text: string;
  export default text;
}
