/** How the numbers of drift read, in the table and on the page. */

/** A share between 0 and 1. Never rounded up to 1: that means all of it. */
export function share(value: number | null): string {
  if (value === null) return "–";
  const text = value.toFixed(2);
  return text === "1.00" && value < 1 ? "0.99" : text;
}

export function whole(value: number | null): string {
  return value === null ? "–" : value.toLocaleString("en");
}

/** What was served of what could have been; `null` where nothing could, or nothing was reported. */
export function efficiencyOf({ cached, allowed }: { cached: number | null; allowed: number }): number | null {
  return cached === null || allowed === 0 ? null : Math.min(cached, allowed) / allowed;
}

export function shortName(fingerprint: string): string {
  return fingerprint.slice(0, 12);
}
