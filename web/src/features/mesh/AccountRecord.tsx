import { useState } from "react";
import type { AccountRecord as Found, RecordRedirect } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Notice } from "../../ui/Notice";
import { ownAccountText } from "./neighbours.logic";

/** Whether the owner's account names the key of this Freehold, and the way to have it do so. */
export function AccountRecord() {
  const record = useResource<Found>("/v1/mesh/record");
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);

  async function begin() {
    setIsBusy(true);
    setFailure(null);
    try {
      const { redirect } = await request<RecordRedirect>("/v1/mesh/record", { method: "POST", body: {} });
      location.assign(redirect);
    } catch (error) {
      setFailure(problemOf(error));
      setIsBusy(false);
    }
  }

  if (record.value === null) return record.problem ? <Notice problem={record.problem} /> : null;
  return (
    <div>
      {failure && <Notice problem={failure} />}
      <p>{ownAccountText(record.value.proof)}</p>
      {record.value.proof !== "proven" && (
        <>
          <p className="quiet">
            Then a neighbour can check that this Freehold is yours. You sign in at your account, which asks you to agree
            to this one kind of record.
          </p>
          <button type="button" disabled={isBusy} onClick={() => void begin()}>
            Name this key in your account
          </button>
        </>
      )}
    </div>
  );
}
