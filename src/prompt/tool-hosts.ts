/** Where an agent that was published over the API may call out to: the operator's list, and nowhere else. */

/**
 * What is wrong with a URL, or `null`. `hosts` is the var `TOOL_HOSTS`: host names, with a port where it is not 443,
 * separated by commas; absent means none.
 */
export function toolHostFault(url: string, hosts: string | undefined): string | null {
  const parsed = URL.parse(url);
  if (parsed?.protocol !== "https:") return "must be an https URL";
  const known = (hosts ?? "").split(",").map((host) => host.trim().toLowerCase());
  if (parsed.host !== "" && known.includes(parsed.host)) return null;
  return `the host ${parsed.host} is not in this service's TOOL_HOSTS`;
}
