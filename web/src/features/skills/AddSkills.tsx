import { type FormEvent, useState } from "react";
import type { LookAtSkills } from "../../client/api";

type SourceName = LookAtSkills["source"] | "archive";

const SOURCES: readonly [SourceName, string][] = [
  ["shipped", "Skills that come with Freehold"],
  ["proposals", "Proposals of agents"],
  ["remote", "A git repository"],
  ["package", "A package"],
  ["archive", "An archive"],
];

interface AddSkillsProps {
  busy: boolean;
  onLook: (asked: LookAtSkills) => void;
  onUpload: (file: File) => void;
}

/** Chooses a source to look at. Nothing is added by this. */
export function AddSkills({ busy, onLook, onUpload }: AddSkillsProps) {
  const [source, setSource] = useState<SourceName>("shipped");
  const [place, setPlace] = useState("");
  const [commit, setCommit] = useState("");
  const [file, setFile] = useState<File | null>(null);
  const needsPlace = source === "remote" || source === "package";
  const isReady = source === "archive" ? file !== null : !needsPlace || place.trim() !== "";

  function submit(event: FormEvent) {
    event.preventDefault();
    if (source !== "archive") {
      const pinned = source === "remote" && commit.trim() !== "" ? commit.trim() : null;
      onLook({ source, place: needsPlace ? place.trim() : "", commit: pinned });
    } else if (file !== null) onUpload(file);
  }

  return (
    <form className="skills-form" aria-label="Add skills" onSubmit={submit}>
      <select
        aria-label="Source"
        value={source}
        onChange={(event) => {
          setSource(event.target.value as SourceName);
          setPlace("");
        }}
      >
        {SOURCES.map(([name, words]) => (
          <option key={name} value={name}>
            {words}
          </option>
        ))}
      </select>
      {needsPlace && (
        <input
          aria-label={source === "remote" ? "Address" : "Package"}
          placeholder={source === "remote" ? "https://example.org/skills.git" : "npm:name@1.2.3 or pypi:name==1.2.3"}
          maxLength={2000}
          value={place}
          onChange={(event) => setPlace(event.target.value)}
        />
      )}
      {source === "remote" && (
        <input
          aria-label="Commit"
          placeholder="Commit, tag or branch"
          maxLength={200}
          value={commit}
          onChange={(event) => setCommit(event.target.value)}
        />
      )}
      {source === "archive" && (
        <input
          type="file"
          aria-label="Archive"
          accept=".zip,.tar,.tgz,.tar.gz,.skill"
          onChange={(event) => setFile(event.target.files?.[0] ?? null)}
        />
      )}
      <button type="submit" className="primary" disabled={busy || !isReady}>
        Look
      </button>
    </form>
  );
}
