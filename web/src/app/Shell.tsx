import { useEffect, useState } from "react";
import type { Me } from "../client/api";
import { ApprovalsProvider, useApprovals } from "../features/approvals/ApprovalsProvider";
import { PendingRequests } from "../features/approvals/PendingRequests";
import { KillSwitchBar } from "../features/kill-switch/KillSwitchBar";
import { KillSwitchProvider } from "../features/kill-switch/KillSwitchProvider";
import { EgressProvider, useEgress } from "../features/network/EgressProvider";
import { networkRequestsOf } from "../features/network/egress.logic";
import { Notifications } from "../features/notifications/Notifications";
import { SessionListProvider } from "../features/session-list/SessionListProvider";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { go, useRoute } from "../ui/route";
import { CommandPalette } from "./CommandPalette";
import { ConnectionBar } from "./ConnectionBar";
import { Navigation } from "./Navigation";
import { componentAt } from "./pageComponents";
import { pageAt, START_PAGE } from "./pages";
import { ShortcutsDialog } from "./ShortcutsDialog";
import { UpdateBar } from "./UpdateBar";
import { useCommands } from "./useCommands";
import { useShortcuts } from "./useShortcuts";

interface ShellProps {
  me: Me;
  onSignedOut: () => void;
}

/** What surrounds every page: navigation, the state of the connection, and the requests that wait for the owner. */
export function Shell(props: ShellProps) {
  return (
    <EgressProvider>
      <SessionListProvider>
        <ApprovalsProvider>
          <KillSwitchProvider>
            <Frame {...props} />
          </KillSwitchProvider>
        </ApprovalsProvider>
      </SessionListProvider>
    </EgressProvider>
  );
}

function Frame({ me, onSignedOut }: ShellProps) {
  const { path } = useRoute();
  const [dialog, setDialog] = useState<"palette" | "shortcuts" | null>(null);
  const page = pageAt(path);
  const PageComponent = componentAt(path);
  const { requests } = useApprovals();
  const permissionRequests = requests.length;
  const networkRequests = networkRequestsOf(useEgress().state).length;
  const commands = useCommands({ onSignedOut, onShowShortcuts: () => setDialog("shortcuts") });
  useShortcuts(setDialog);

  useEffect(() => {
    if (path === "/") go(START_PAGE, { replace: true });
  }, [path]);

  return (
    <div className="app">
      <a className="app-skip" href="#page">
        Skip to the page
      </a>
      <Navigation
        page={page}
        handle={me.handle}
        on={[...me.slots, ...me.features]}
        badges={{ "/sessions": permissionRequests, "/network": networkRequests }}
        onOpenPalette={() => setDialog("palette")}
      />
      <div className="app-content">
        <ConnectionBar recovery={me.recovery} />
        <UpdateBar />
        <KillSwitchBar />
        <ErrorBoundary name="The list of requests" content={requests}>
          <PendingRequests />
        </ErrorBoundary>
        <main id="page" tabIndex={-1} data-page={page?.path.slice(1) ?? ""}>
          <ErrorBoundary key={page?.path ?? path} name={page?.title ?? "This page"}>
            <PageComponent onSignedOut={onSignedOut} />
          </ErrorBoundary>
        </main>
      </div>
      <ErrorBoundary name="Notifications" fallback={null}>
        <Notifications permissionRequests={permissionRequests} networkRequests={networkRequests} page={page?.title} />
      </ErrorBoundary>
      {dialog === "palette" && <CommandPalette commands={commands} onClose={() => setDialog(null)} />}
      {dialog === "shortcuts" && <ShortcutsDialog onClose={() => setDialog(null)} />}
    </div>
  );
}
