/** Previews of servers in the computer: `home.preview`. */

import type { NamedSite, NamedSites, PreviewAddress, PreviewPort, PreviewPorts } from "./api.ts";
import type { Link } from "./freehold.ts";

export class Preview {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** The ports in the computer on which a process listens. */
  async ports(): Promise<PreviewPort[]> {
    return (await this.link.connection.get<PreviewPorts>("/v1/preview/ports")).ports;
  }

  /** A one-time address for a browser. The preview ends with this token. Needs the scope `terminal`. */
  open(port: number, { path = "/" }: { path?: string } = {}): Promise<PreviewAddress> {
    return this.link.connection.post(`/v1/preview/${port}/open`, { path });
  }

  /** The sites of features: the desktop and the editor. */
  async sites(): Promise<NamedSite[]> {
    return (await this.link.connection.get<NamedSites>("/v1/preview/sites")).sites;
  }

  /** Starts a site, and a one-time address for a browser. Needs the scope `terminal`. */
  openSite(name: string): Promise<PreviewAddress> {
    return this.link.connection.post(`/v1/preview/sites/${encodeURIComponent(name)}/open`, {});
  }

  /** Ends the programs of a site. Needs the scope `terminal`. */
  stopSite(name: string): Promise<NamedSite> {
    return this.link.connection.post(`/v1/preview/sites/${encodeURIComponent(name)}/stop`, {});
  }
}
