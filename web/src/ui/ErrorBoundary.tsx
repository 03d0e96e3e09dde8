import { Component, type ReactNode } from "react";
import { Notice } from "./Notice";

interface ErrorBoundaryProps {
  /** The part of the page that it surrounds, as the start of a sentence. */
  name: string;
  children: ReactNode;
}

interface ErrorBoundaryState {
  message: string | null;
}

/** Shows a notice in place of a part of the page that throws. Everything outside of it keeps working. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, ErrorBoundaryState> {
  override state: ErrorBoundaryState = { message: null };

  static getDerivedStateFromError(error: unknown): ErrorBoundaryState {
    return { message: error instanceof Error ? error.message : String(error) };
  }

  override render(): ReactNode {
    const { message } = this.state;
    if (message === null) return this.props.children;
    return (
      <div className="column">
        <Notice
          problem={{
            code: "page.error",
            message: `${this.props.name} has an error: ${message}`,
            hint: "Reload the page. If it happens again, please report it. The other pages still work.",
          }}
          action={{ label: "Reload the page", run: () => location.reload() }}
        />
      </div>
    );
  }
}
