import SideBySide from "./SideBySide";

/** The version on disk, and what was typed, beside each other. */
export default function FileComparison({ path, onDisk, typed }: { path: string; onDisk: string; typed: string }) {
  return (
    <div className="files-comparison">
      <p className="files-comparison-heads">
        <span>On disk</span>
        <span>Your version</span>
      </p>
      <SideBySide
        path={path}
        ignoresSpace={false}
        before={onDisk}
        after={typed}
        comments={[]}
        onComment={() => undefined}
        ref={null}
      />
    </div>
  );
}
