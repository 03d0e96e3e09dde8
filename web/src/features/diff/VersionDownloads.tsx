import { useState } from "react";
import type { ComparedFile } from "../../client/api";
import { CopyButton } from "../../ui/CopyButton";
import { formatBytes } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { useToasts } from "../../ui/Toasts";
import { type DownloadableVersion, downloadableVersions, MAX_DOWNLOAD, showCommand } from "./diff.logic";
import { readBlobAt } from "./useFileVersions";

interface VersionDownloadsProps {
  file: ComparedFile;
  /** The entries of the two versions; null where the file does not exist. */
  old: number | null;
  now: number | null;
}

/** Both versions of a file that is not shown: as downloads, or as a command where one is too large for the browser. */
export function VersionDownloads({ file, old, now }: VersionDownloadsProps) {
  return (
    <div className="diff-downloads">
      {downloadableVersions(file, old, now).map((version) =>
        version.size > MAX_DOWNLOAD ? (
          <VersionCommand key={version.side} version={version} path={file.path} />
        ) : (
          <DownloadButton key={version.side} version={version} path={file.path} />
        ),
      )}
    </div>
  );
}

function VersionCommand({ version, path }: { version: DownloadableVersion; path: string }) {
  const command = showCommand(version.entry, path);
  return (
    <p>
      {version.side === "old" ? "On the server, for the version before:" : "On the server, for the version after:"}{" "}
      <code>{command}</code> <CopyButton text={command} />
    </p>
  );
}

function DownloadButton({ version, path }: { version: DownloadableVersion; path: string }) {
  const [isLoading, setLoading] = useState(false);
  const toasts = useToasts();
  async function download() {
    setLoading(true);
    try {
      const address = URL.createObjectURL(await readBlobAt(version.entry, path));
      const link = document.createElement("a");
      link.href = address;
      link.download = `${version.entry}-${path.slice(path.lastIndexOf("/") + 1)}`;
      link.click();
      // The browser reads it after this task.
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    } catch (error) {
      toasts.failed(error);
    } finally {
      setLoading(false);
    }
  }
  const size = formatBytes(version.size);
  return (
    <button type="button" className="small" disabled={isLoading} onClick={() => void download()}>
      <Icon name="download" size={16} />{" "}
      {version.side === "old" ? `Download the version before (${size})` : `Download the version after (${size})`}
    </button>
  );
}
